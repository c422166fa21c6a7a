"""When a server no longer is what its callers would start."""

import sys
from pathlib import Path

import pytest

import headrace
from headrace.serve.freshness import Freshness
from headrace.serve.log import KEPT_BYTES, MOST_BYTES, bound


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "headrace.toml").write_text('[sources.s]\nurl_env = "SHOP_URL"\ntables = ["public.t"]\n')
    return tmp_path


ENVIRONMENT = {"HEADRACE_JARS_DIR": "/jars", "SHOP_URL": "postgresql://a", "EDITOR": "vi"}


def asked(**changes: str | None) -> dict[str, object]:
    environment = {k: v for k, v in {**ENVIRONMENT, **changes}.items() if v is not None}
    return {"version": headrace.__version__, "python": sys.version, "prefix": sys.prefix, "environment": environment}


def test_nothing_changed(root: Path) -> None:
    assert Freshness(root, ENVIRONMENT).staleness(asked(EDITOR="emacs", HEADRACE_PROJECT="x")) is None
    assert Freshness(root, ENVIRONMENT).staleness({}) is None


@pytest.mark.parametrize("name", ["HEADRACE_JARS_DIR", "SHOP_URL", "JAVA_HOME", "SPARK_HOME", "TZ"])
def test_a_variable_that_matters(root: Path, name: str) -> None:
    assert name in str(Freshness(root, ENVIRONMENT).staleness(asked(**{name: "other"})))


def test_a_variable_that_is_gone(root: Path) -> None:
    assert "HEADRACE_JARS_DIR" in str(Freshness(root, ENVIRONMENT).staleness(asked(HEADRACE_JARS_DIR=None)))


def test_a_variable_of_a_connection_string_that_is_new_is_taken_over(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    monkeypatch.delenv("NEW_URL", raising=False)
    freshness = Freshness(root, ENVIRONMENT)
    given = {**asked(NEW_URL="postgresql://b"), "args": ["source", "add", "n", "env:NEW_URL"]}
    assert freshness.staleness(given) is None
    assert os.environ.pop("NEW_URL") == "postgresql://b"
    changed = {**asked(NEW_URL="postgresql://c"), "args": ["source", "add", "n", "env:NEW_URL"]}
    assert "NEW_URL" in str(freshness.staleness(changed))


def test_settings_version_and_python(root: Path) -> None:
    freshness = Freshness(root, ENVIRONMENT)
    assert "version" in str(freshness.staleness({**asked(), "version": "9.9"}))
    assert "Python" in str(freshness.staleness({**asked(), "prefix": "/elsewhere"}))
    (root / "headrace.toml").write_text("")
    assert "headrace.toml changed" in str(freshness.staleness(asked()))


def test_program_files(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import types

    file = tmp_path / "new_part.py"
    file.touch()
    module = types.ModuleType("headrace.new_part")
    module.__file__ = str(file)
    monkeypatch.setitem(sys.modules, "headrace.new_part", module)
    freshness = Freshness(root, ENVIRONMENT)
    assert freshness.staleness(asked()) is None
    file.unlink()
    assert "program files" in str(freshness.staleness(asked()))


def test_a_log_keeps_its_end_while_others_append(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    with log.open("ab") as writer:
        line = b"x" * 99 + b"\n"
        writer.write(line * (MOST_BYTES // 100 + 10))
        writer.flush()
        bound(log)
        assert log.stat().st_size <= KEPT_BYTES + 100
        writer.write(b"the end\n")
    lines = log.read_bytes().splitlines()
    assert (lines[0], lines[1], lines[-1]) == (b"(earlier lines were removed)", b"x" * 99, b"the end")
    size = log.stat().st_size
    bound(log)
    assert log.stat().st_size == size
