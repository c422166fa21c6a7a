"""Tables of very many rows look as Rich draws short ones."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.table import Table

from headrace.cli.render import long_tables
from headrace.cli.render.format import grid
from headrace.cli.render.narrow import fitted

ROWS = 6


def sample() -> Table:
    table = grid("A long heading", ("Rows", "right"), "What")
    for number in range(ROWS):
        table.add_row(f"s.t{number}", str(10**number), "[red]bad[/red] “x” \\[y]" if number % 2 else "日本 ok")
    return table


def printed(table: Table, width: int, color: bool = False) -> str:
    part, stream = fitted(table, width), io.StringIO()
    Console(file=stream, width=width, color_system="truecolor" if color else None, force_terminal=color).print(part)
    return stream.getvalue()


@pytest.mark.parametrize("width", [60, 46, 30])
def test_nothing_shows_who_drew(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    by_rich = printed(sample(), width)
    monkeypatch.setattr(long_tables, "LONG", ROWS)
    assert printed(sample(), width) == by_rich


def test_styles_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_tables, "LONG", ROWS)
    assert "\x1b[31mbad\x1b[0m “x” [y]" in printed(sample(), 60, color=True)
    assert "\x1b[1mA long heading   " in printed(sample(), 60, color=True)


def test_a_value_of_several_lines_is_left_to_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    table = sample()
    table.add_row("two", "2", "one\ntwo")
    by_rich = printed(table, 60)
    monkeypatch.setattr(long_tables, "LONG", ROWS)
    assert printed(table, 60) == by_rich
