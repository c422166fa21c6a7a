"""What a command line asks of a server, seen from its words."""

from pathlib import Path

import pytest
from kit.owners import belongs_to_another_user

from headrace.cli.main import app
from headrace.serve.caller.words import LOCAL, STARTING, Words


@pytest.mark.parametrize(
    ("line", "verb", "project", "served"),
    [
        ("sql SELECT", "sql", None, True),
        ("-p shop status", "status", "shop", True),
        ("status -p shop", "status", "shop", True),
        ("--project=shop --json refresh", "refresh", "shop", True),
        ("refresh --no-serve", "refresh", None, False),
        ("refresh --help", "refresh", None, False),
        ("sql -- --help", "sql", None, True),
        ("sql -- -p other", "sql", None, True),
        ("-p/x drop t", "drop", "/x", True),
        ("-qp/x drop t", "drop", "/x", True),
        ("-qp /x drop t", "drop", "/x", True),
        ("-qh drop t", "drop", None, False),
        ("create -f-p t", "create", None, True),
        ("run --once", "run", None, False),
        ("init shop", "init", None, False),
        ("--version", None, None, False),
        ("", None, None, False),
    ],
)
def test_what_the_words_say(line: str, verb: str | None, project: str | None, served: bool) -> None:
    words = Words(line.split(), {})
    assert (words.verb, words.project, words.served) == (verb, project, served)


def test_variables_count_where_nothing_is_said() -> None:
    assert Words(["status"], {"HEADRACE_PROJECT": "here"}).project == "here"
    assert Words(["status", "-p", "there"], {"HEADRACE_PROJECT": "here"}).project == "there"
    assert not Words(["status"], {"HEADRACE_NO_SERVE": "1"}).served
    assert Words(["status"], {"HEADRACE_NO_SERVE": "0"}).served


@pytest.mark.parametrize(
    ("line", "quiet"),
    [("status -q", True), ("--json status", True), ("-qpx status", True), ("-pq status", False), ("status", False)],
)
def test_who_wants_no_lines(line: str, quiet: bool) -> None:
    assert Words(line.split(), {}).quiet is quiet


def test_the_project_is_the_nearest_folder_with_settings(tmp_path: Path) -> None:
    (tmp_path / "shop" / "deep").mkdir(parents=True)
    (tmp_path / "shop" / "headrace.toml").touch()
    shop = str((tmp_path / "shop").resolve())
    assert Words(["status"], {}).root(str(tmp_path / "shop" / "deep"), "headrace.toml") == shop
    assert Words(["status", "-p", "shop"], {}).root(str(tmp_path), "headrace.toml") == shop
    assert Words(["status", "-p", "shop/headrace.toml"], {}).root(str(tmp_path), "headrace.toml") == shop
    assert Words(["status", "-p", "shop/deep"], {}).root(str(tmp_path), "headrace.toml") is None
    assert Words(["status"], {}).root(str(tmp_path), "headrace.toml") is None


@pytest.mark.parametrize("of", [".", "headrace.toml", "functions.py"])
def test_a_project_of_another_user_is_not_found_but_may_be_named(
    of: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop" / "deep").mkdir(parents=True)
    for name in ("headrace.toml", "functions.py"):
        (tmp_path / "shop" / name).touch()
    deep, shop = str(tmp_path / "shop" / "deep"), str((tmp_path / "shop").resolve())
    assert Words(["status"], {}).root(deep, "headrace.toml") == shop
    belongs_to_another_user(tmp_path / "shop" / of, monkeypatch)
    assert Words(["status"], {}).root(deep, "headrace.toml") is None
    assert Words(["status", "-p", ".."], {}).root(deep, "headrace.toml") == shop
    assert Words(["status"], {"HEADRACE_PROJECT": shop}).root(deep, "headrace.toml") == shop


def test_a_link_of_another_user_to_settings_of_this_one_is_no_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("mine", "shop"):
        (tmp_path / name).mkdir()
    (tmp_path / "mine" / "headrace.toml").touch()
    (tmp_path / "shop" / "headrace.toml").symlink_to(tmp_path / "mine" / "headrace.toml")
    belongs_to_another_user(tmp_path / "shop" / "headrace.toml", monkeypatch)
    assert Words(["status"], {}).root(str(tmp_path / "shop"), "headrace.toml") is None


def test_projects_of_root_may_be_used_by_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "headrace.toml").touch()
    for path in (tmp_path, tmp_path / "headrace.toml"):
        belongs_to_another_user(path, monkeypatch, owner=0)
    monkeypatch.setattr("os.geteuid", lambda: 4711)
    assert Words(["status"], {}).root(str(tmp_path), "headrace.toml") == str(tmp_path.resolve())


def test_the_lists_name_verbs_that_there_are() -> None:
    planned = {"web", "completion", "repair"}
    assert {*LOCAL, *STARTING} - planned <= set(app.commands)
