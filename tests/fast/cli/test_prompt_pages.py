"""Long results at the prompt: the pager, and rows with a line for each column."""

from pathlib import Path

import pytest
from rich.console import Console

from headrace.cli.prompt import pager
from headrace.cli.render.answers import Rows, answer

LONG = "".join(f"line {n}\n" for n in range(100))


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LINES", "10")


@pytest.mark.usefixtures("terminal")
def test_what_is_longer_than_the_terminal_is_paged(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "paged"
    pager.page(LONG, {"PAGER": f'cat > {file}; echo "$LESS" >> {file}'})
    assert capfd.readouterr().out == ""
    assert file.read_text() == f"{LONG}FRX\n"


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(
    ("text", "environment"),
    [
        ("short\n", {"PAGER": "false"}),
        (LONG, {"PAGER": " "}),
        (LONG, {"PAGER": "no-such-pager-anywhere"}),
    ],
)
def test_what_cannot_or_need_not_be_paged_is_printed(
    text: str, environment: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    pager.page(text, environment)
    assert capfd.readouterr().out == text


@pytest.mark.usefixtures("terminal")
def test_a_pager_that_is_left_at_once_is_no_error(capfd: pytest.CaptureFixture[str]) -> None:
    pager.page(LONG * 10_000, {"PAGER": "head -n 1"})
    assert capfd.readouterr() == ("line 0\n", "")


@pytest.mark.parametrize(
    ("text", "long"),
    [("a\n" * 8, False), ("a\n" * 9, True), ("a" * 400, True), ("\x1b[1m" + "a" * 300 + "\x1b[0m\n", False)],
)
def test_lines_are_counted_as_the_terminal_wraps_them(text: str, long: bool) -> None:
    assert pager.is_long(text, width=40, height=10) is long


def test_expanded_rows() -> None:
    rows = Rows(("id", "größe"), ("bigint", "string"), ((1, "S"), (2, None), (3, "a\nb")), more=True)
    console = Console(width=40, color_system=None)
    with console.capture() as captured:
        for part in answer(rows, lines=True, more="\\pset limit N"):
            console.print(part)
    assert captured.get() == (
        "row 1\n  id     1\n  größe  S\nrow 2\n  id     2\n  größe  NULL\n"
        "row 3\n  id     3\n  größe  a\n         b\n"
        "3 rows shown; there are more (\\pset \nlimit N)\n"
    )
