"""The interactive prompt, fed with keys: what needs no Spark."""

from collections.abc import Callable
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import headrace
from headrace.cli.invocation import Invocation
from headrace.cli.main import app
from headrace.cli.prompt.loop import Prompt
from headrace.cli.prompt.pieces import Kind, is_complete, pieces

CTRL_C, CTRL_D, UP = "\x03", "\x04", "\x1b[A"

VERBS = app.commands

Typed = Callable[..., tuple[str, str]]


@pytest.fixture
def typed(project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Types keys at the prompt; returns what was printed."""
    monkeypatch.setenv("COLUMNS", "300")

    def type_keys(keys: str, asked: Invocation | None = None) -> tuple[str, str]:
        with (
            headrace.open(project) as hr,
            create_pipe_input() as pipe,
            create_app_session(input=pipe, output=DummyOutput()),
        ):
            pipe.send_text(keys)
            Prompt(asked or Invocation(project), hr, app, 100).loop()
            assert not hr._lazy.started
        said = capsys.readouterr()
        return said.out, said.err

    return type_keys


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("SELECT 1;", True),
        ("SELECT 1", False),
        ("SELECT 1; ", True),
        ("SELECT ';", False),
        ("SELECT 1 -- not yet;", False),
        ("BEGIN SELECT 1;", False),
        ("BEGIN SELECT 1; END;", True),
        ("SELECT " + "1" * 2000 + ";", True),  # refused, and told so
        ("", True),
        ("exit", True),
        ("QUIT", True),
        ("help", True),
        ("help explain", True),
        ("\\x", True),
        ("status", True),
        ("status --json", True),
        ("explain shop.a", True),
        ('explain "SELECT', False),
        ('explain "SELECT 1"', True),
        ("EXPLAIN SELECT 1", False),
        ("explain", False),
        ("refresh", False),
        ("refresh;", True),
        ("create shop.a", False),
        ('create shop.a\n"SELECT 1";', True),
        ("statsu", True),
        ("SELECT 1;\nstatus", True),
    ],
)
def test_when_enter_runs(text: str, done: bool) -> None:
    assert is_complete(text, VERBS) is done


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("EXPLAIN SELECT 1", [Kind.SQL]),
        ("explain (SELECT 1)", [Kind.SQL]),
        ("EXPLAIN ANALYZE STREAM TABLE shop.a", [Kind.SQL]),
        ("explain shop.a --mode FULL", [Kind.VERB]),
        ("explain select.a", [Kind.VERB]),
        ('explain "SELECT 1"', [Kind.VERB]),
        ("REFRESH STREAM TABLE shop.a", [Kind.SQL]),
        ("REFRESH ALL STREAM TABLES", [Kind.SQL]),
        ("refresh TABLE shop.a", [Kind.SQL]),
        ("refresh shop.a", [Kind.VERB]),
        ("headrace refresh all", [Kind.VERB]),
        ("verify SINK crm", [Kind.SQL]),
        ("verify shop.a", [Kind.VERB]),
        ("REPAIR STREAM TABLE shop.a", [Kind.SQL]),
        ("repair shop.a", [Kind.VERB]),
        ("CREATE TABLE shop.a (x INT)", [Kind.SQL]),
        ("create or replace STREAM TABLE shop.a AS SELECT 1", [Kind.SQL]),
        ('create shop.a "SELECT 1"', [Kind.VERB]),
        ("alter shop.a --mode FULL", [Kind.VERB]),
        ("ALTER STREAM TABLE shop.a DROP SCHEDULE", [Kind.SQL]),
        ("drop shop.a --cascade", [Kind.VERB]),
        ("DROP KEY (a) ON shop.a", [Kind.SQL]),
        ("show-create shop.a", [Kind.VERB]),
        ("SHOW CREATE STREAM TABLE shop.a", [Kind.SQL]),
        ("STATUS", [Kind.VERB]),
        ("status --json; SELECT ';' -- ;\n; history -n 3", [Kind.VERB, Kind.SQL, Kind.VERB]),
        ("status\nSELECT 1;\n\\x\nexit", [Kind.VERB, Kind.SQL, Kind.SWITCH, Kind.LEAVE]),
        ("-- note\nstatus; /* ; */ help", [Kind.VERB, Kind.HELP]),
        ("-- nothing", []),
    ],
)
def test_statements_verbs_and_switches_are_told_apart(text: str, kinds: list[Kind]) -> None:
    assert [piece.kind for piece in pieces(text, VERBS)] == kinds


def test_a_verb_keeps_its_words() -> None:
    (piece,) = pieces("create shop.a\n  \"SELECT 'a;b' AS x\" --set tier=2;", VERBS)
    assert piece.words() == ["create", "shop.a", "SELECT 'a;b' AS x", "--set", "tier=2"]


def test_verbs_are_those_of_the_command_line(typed: Typed) -> None:
    out, err = typed("status;\rhistory -n 3;\rheadrace graph\rexit\r")
    assert "There are no stream tables yet; `headrace create --help`" in out
    assert "Nothing was refreshed yet.\nThere are no stream tables yet.\n" in out
    assert err == ""


def test_json_and_quiet_hold_for_verbs(typed: Typed, project: Path) -> None:
    out, err = typed("status --json;\rexit\r")
    assert out.endswith("[]\n")
    assert typed("status;\r\\x\r\\o\rexit\r", Invocation(project, json=True, quiet=True)) == ("[]\n", "")
    out, err = typed("\\foo\rverify shop.none;\rexit\r", Invocation(project, json=True, quiet=True))
    assert out == ""
    assert '"code": "USAGE"' in err
    assert '"code": "STREAM_TABLE_NOT_FOUND"' in err


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("\\foo", "Error: There is no \\foo. \\? lists all.\n"),
        ("\\timin", "Error: There is no \\timin. Did you mean \\timing? \\? lists all.\n"),
        ("\\timing maybe", "Error: 'maybe' is neither on nor off: \\timing [on|off].\n"),
        ("\\o /nowhere/at/all", "Error: /nowhere/at/all cannot be written: No such file or directory.\n"),
        ("\\o 'a", "Error: A quotation has no end.\n"),
        ("\\o a b", "Error: \\o takes one file; quote a name with blanks.\n"),
        ("\\pset border 2", "Error: There is no \\pset border; there are \\pset pager and \\pset limit.\n"),
        ("\\pset limit 0", "Error: '0' is no number of rows: \\pset limit N, 1 to 1,000,000.\n"),
        ("statsu;", "Error: There is no verb or statement statsu. Did you mean status? help; lists all.\n"),
        ("foo;", "Error: There is no verb or statement foo. help; lists all.\n"),
        ("SELEKT a FROM b;", "Error: There is no verb or statement SELEKT. Did you mean select? help; lists all.\n"),
        ("headrace statsu", "Error: No such command 'statsu'. Did you mean 'status'?"),
        ("status --jsn", "Error: No such option '--jsn'. Did you mean '--json'?"),
        ("history -n none", "Error: Invalid value for '--limit' / '-n': 'none' is not a valid integer range.\n"),
        ("verify shop.none;", "Error: There is no stream table shop.none."),
        ("status -p elsewhere", "; another project has its own.\n"),
        ("serve", "Error: serve needs a process of its own: leave, or use another terminal.\n"),
        ("sql", "Error: This is the prompt already: type the statement.\n"),
        ("help nonsense", "Error: No such command 'nonsense'."),
        ("\\pset\nSELECT 'a;", ""),
    ],
)
def test_bad_input_gets_a_sentence(typed: Typed, keys: str, said: str) -> None:
    out, err = typed(f"{keys}\r{CTRL_C}status;\rexit\r")
    assert said in err
    assert "Traceback" not in err
    assert "internal error" not in err
    assert "There are no stream tables yet" in out, "the prompt goes on"


def test_a_script_stops_at_what_fails(typed: Typed) -> None:
    out, err = typed("verify shop.none; status;\rexit\r")
    assert "STREAM_TABLE_NOT_FOUND" in err
    assert "There are no stream tables" not in out


def test_switches_say_what_they_are(typed: Typed, tmp_path: Path) -> None:
    file = tmp_path / "out put.txt"
    keys = f"\\timing\r\\x\r\\pset pager off\r\\pset limit 5\r\\o '{file}'\rstatus\r\\o\r\\x off\r\\timing off\rexit\r"
    out, err = typed(keys)
    assert err == ""
    lines = out.splitlines()[1:]
    assert lines[:5] == [
        "Timing is on.",
        "Expanded display is on.",
        "The pager is off; up to 100 rows of a result are shown.",
        "The pager is off; up to 5 rows of a result are shown.",
        f"Results go to {file}; \\o ends it.",
    ]
    assert lines[5].startswith("Time: ")
    assert lines[6:] == [f"{file} is written; results are shown here.", "Expanded display is off.", "Timing is off."]
    assert file.read_text().startswith("There are no stream tables yet")


def test_a_file_that_cannot_take_more_is_given_up(typed: Typed) -> None:
    out, err = typed("\\o /dev/full\rstatus;\rstatus;\rexit\r")
    assert err == "Error: /dev/full cannot be written: No space left on device. Results are shown here again.\n"
    assert "There are no stream tables yet" in out


@pytest.mark.parametrize("asking", ["help", "help;", "\\?", "\\h"])
def test_help_lists_everything(typed: Typed, asking: str) -> None:
    out, err = typed(f"{asking}\rexit\r")
    assert err == ""
    assert "CREATE [OR REPLACE] STREAM TABLE" in out
    assert "EXPLAIN SELECT … is Spark's" in out
    assert all(f"\n  {verb} " in out for verb in VERBS)
    assert all(
        form in out for form in ("\\timing [on|off]", "\\x [on|off]", "\\o [FILE]", "\\pset pager", "\\?", "\\q")
    )


def test_help_explains_a_verb(typed: Typed) -> None:
    out, _ = typed("help history;\rexit\r")
    assert "headrace history shop.revenue -n 100" in out


def test_a_statement_may_take_several_lines(typed: Typed) -> None:
    assert "There is no stream table a.b" in typed("REFRESH\rSTREAM TABLE a.b;\rexit\r")[1]


def test_ctrl_c_drops_the_line_and_ctrl_d_leaves(typed: Typed) -> None:
    out, err = typed(f"verify shop.x{CTRL_C}status;\r{CTRL_D}")
    assert err == ""
    assert "There are no stream tables yet" in out


def test_history_outlives_the_prompt_and_is_its_users(typed: Typed, project: Path) -> None:
    typed("history -n 41;\rexit;\r")
    assert "Nothing was refreshed yet." in typed(f"{UP}{UP}\rexit\r")[0]
    assert (project / ".headrace" / "history").stat().st_mode & 0o077 == 0


def test_a_history_that_cannot_be_kept_is_forgotten(typed: Typed, project: Path) -> None:
    (project / ".headrace").touch()  # as in a folder that may not be written, which root always may
    out, err = typed("status;\rexit\r")
    assert "There are no stream tables yet" in out
    assert err == ""


def test_a_defect_does_not_end_the_session(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("oops")

    monkeypatch.setattr("headrace.cli.prompt.dispatch.run_script", fail)
    out, err = typed("SELECT 1;\rstatus;\rexit\r")
    assert "internal error: RuntimeError: oops" in err
    assert "There are no stream tables yet" in out
