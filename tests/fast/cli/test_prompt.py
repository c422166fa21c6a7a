"""The interactive prompt, fed with keys."""

from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from headrace.cli.invocation import Invocation
from headrace.cli.prompt import Prompt, complete
from headrace.errors import UserError

CTRL_C, CTRL_D, UP = "\x03", "\x04", "\x1b[A"


def typed(project: Path, keys: str, run: object = None) -> list[str]:
    """Statements that were run for these keys."""
    ran: list[str] = []
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        pipe.send_text(keys)
        Prompt(Invocation(project), ["shop.revenue"], run or ran.append).loop()  # type: ignore[arg-type]
    return ran


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("SELECT 1;", True),
        ("SELECT 1", False),
        ("SELECT 1; ", True),
        ("", True),
        ("exit", True),
        ("QUIT", True),
        ("help", True),
    ],
)
def test_when_enter_runs(text: str, done: bool) -> None:
    assert complete(text) is done


def test_a_statement_may_take_several_lines(project: Path) -> None:
    assert typed(project, "SELECT\r1;\rexit\r") == ["SELECT\n1;"]


def test_ctrl_c_drops_the_line_and_ctrl_d_leaves(project: Path) -> None:
    assert typed(project, f"SELECT 1{CTRL_C}SELECT 2;\r{CTRL_D}") == ["SELECT 2;"]


def test_history_outlives_the_prompt(project: Path) -> None:
    typed(project, "SELECT 41;\rexit;\r")
    assert typed(project, f"{UP}{UP}\rexit\r") == ["SELECT 41;"]


def test_help_lists_the_statements(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(project, "help\rexit\r") == []
    assert "CREATE [OR REPLACE] STREAM TABLE" in capsys.readouterr().out


def test_an_error_does_not_end_the_session(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(text: str) -> None:
        raise UserError("X_CODE", f"no: {text}") if "1" in text else RuntimeError("oops")

    typed(project, "SELECT 1;\rSELECT 2;\rexit\r", fail)
    said = capsys.readouterr().err
    assert "Error: no: SELECT 1;  [X_CODE]" in said
    assert "internal error: RuntimeError: oops" in said
