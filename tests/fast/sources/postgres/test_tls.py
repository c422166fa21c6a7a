"""Connections that are to be encrypted are, or are refused, as `sslmode` says: never made another way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from kit import tls
from kit.mirrored import Follower, truth
from kit.pg_child import Way
from kit.tls import CERTIFICATES

from headrace.errors import EnvironmentFault, UserError
from headrace.sources.postgres.connection import connected
from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture
from headrace.sources.postgres.wal.wal_capture import PostgresCapture

OURS, OTHERS = (f"sslrootcert={CERTIFICATES / name}" for name in ("ca.pem", "other.pem"))


@pytest.fixture(scope="module")
def encrypted() -> Iterator[str]:
    """Where a server with TLS is, by the name that its certificate has; to be told how to trust it."""
    with tls.over_tcp(tls=True) as port:
        url = f"postgresql://postgres@localhost:{port}/postgres?hostaddr=127.0.0.1&"
        with psycopg.connect(f"{url}sslmode=require", autocommit=True) as db:
            db.execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
        yield url


def told(url: str, folder: Path) -> str:
    with pytest.raises(EnvironmentFault, match="SOURCE_LOGIN_REFUSED") as caught:
        Follower(url, folder, "t").begin()
    assert not caught.value.retryable
    return caught.value.detail or ""


@pytest.mark.parametrize("way", [PostgresCapture, TriggerCapture])
@pytest.mark.parametrize(
    "mode",
    [
        "sslmode=require",
        pytest.param(f"sslmode=verify-ca&{OURS}", marks=pytest.mark.long),
        f"sslmode=verify-full&{OURS}",
    ],
)
def test_captured_over_tls(encrypted: str, tmp_path: Path, mode: str, way: Way) -> None:
    with connected(encrypted + mode) as connection:
        assert connection.pgconn.ssl_in_use
    follower = Follower(encrypted + mode, tmp_path, "t", way=way)
    follower.begin()
    with psycopg.connect(encrypted + mode, autocommit=True) as db:
        db.execute("INSERT INTO t SELECT max(id) + 1 FROM t")
        follower.land()
        assert follower.rows("t") == truth(db, "t")
    follower.capture().remove()


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
def test_whoever_is_not_signed_by_the_named_authority_is_refused(encrypted: str, tmp_path: Path, mode: str) -> None:
    assert "certificate verify failed" in told(f"{encrypted}sslmode={mode}&{OTHERS}", tmp_path)


def test_the_certificates_of_the_system_do_not_do(encrypted: str, tmp_path: Path) -> None:
    assert "certificate verify failed" in told(f"{encrypted}sslmode=verify-full&sslrootcert=system", tmp_path)


def test_a_certificate_is_for_a_name(encrypted: str, tmp_path: Path) -> None:
    elsewhere = encrypted.replace("@localhost", "@127.0.0.1")
    assert "does not match host name" in told(f"{elsewhere}sslmode=verify-full&{OURS}", tmp_path)
    with connected(f"{elsewhere}sslmode=verify-ca&{OURS}") as connection:
        assert connection.pgconn.ssl_in_use


def test_an_authority_that_is_not_there_is_told(encrypted: str, tmp_path: Path) -> None:
    missing = tmp_path / "no.pem"
    assert str(missing) in told(f"{encrypted}sslmode=verify-ca&sslrootcert={missing}", tmp_path)


def test_a_server_without_tls_is_not_reached_without_it(tmp_path: Path) -> None:
    with tls.over_tcp(tls=False) as port:
        url = f"postgresql://postgres@127.0.0.1:{port}/postgres?sslmode="
        for mode in ("require", f"verify-full&{OURS}"):
            assert "server does not support SSL, but SSL was required" in told(url + mode, tmp_path)
        with connected(f"{url}prefer") as connection:
            assert not connection.pgconn.ssl_in_use
    with pytest.raises(UserError, match="SOURCE_URL_INVALID") as caught:
        Follower(f"{url}perhaps", tmp_path, "t").begin()
    assert "sslmode" in (caught.value.detail or "")
