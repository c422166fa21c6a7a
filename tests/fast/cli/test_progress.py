"""Progress: plain lines without a terminal, a board that follows events with one."""

from contextlib import suppress
from io import StringIO

import pytest
from rich.console import Console

from headrace.cli import progress
from headrace.cli.invocation import Invocation
from headrace.errors import UserError
from headrace.events import (
    Event,
    Events,
    FuseResolved,
    GateClosed,
    GateOpened,
    Notice,
    Paused,
    Promoted,
    PromotionRefused,
    RefreshFailed,
    RefreshFinished,
    RefreshStarted,
    Resumed,
    RolledBack,
    StageFinished,
    StageStarted,
    Waiting,
    WatchFailed,
    WatermarkAdvanced,
)

STARTED = RefreshStarted("shop.a", "DIFFERENTIAL", None)
FINISHED = RefreshFinished("shop.a", "DIFFERENTIAL", 12, 3, 0.25)
FAILED = RefreshFailed("shop.b", "DIVIDE_BY_ZERO", "Division by zero.")


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (STARTED, None),
        (StageFinished("shop.a", "compute", 0.1), None),
        (FINISHED, "shop.a: DIFFERENTIAL +12 −3 in 250 ms"),
        (FAILED, "shop.b: failed [DIVIDE_BY_ZERO] Division by zero."),
        (Notice("The catalog was migrated."), "The catalog was migrated."),
        (Waiting("shop.c", "shop.b", "paused"), "shop.c: waits, as shop.b is paused"),
        (Waiting("shop.b", "shop.b", "paused"), "shop.b: paused"),
        (Paused(("shop.b", "shop.c")), "Paused shop.b, shop.c."),
        (Resumed(("shop.b",)), "Resumed shop.b."),
        (FuseResolved("shop.b", "skip"), "shop.b: its fuse was resolved: skip"),
        (Promoted("green", ("shop.b",)), "Promoted shop.b of deployment green."),
        (RolledBack("green", ("shop.b",)), "Took back the promotion of shop.b."),
        (
            Promoted("green", ("shop.b",), automatic=True),
            "Promoted shop.b of deployment green, as its conditions held.",
        ),
        (RolledBack("green", ("shop.b",), "its fuse blew"), "Took back the promotion of shop.b, as its fuse blew."),
        (PromotionRefused("green", "E", "No."), "Deployment green was not promoted: No. [E]"),
        (WatchFailed("green", ("shop.b",), "it fails"), "Since the promotion of shop.b: it fails"),
        (
            WatchFailed("green", ("shop.b",), "it fails", "E: no"),
            "Since the promotion of shop.b: it fails; it was not taken back. E: no",
        ),
        (GateClosed(("shop.a",)), "Held back: shop.a."),
        (GateOpened(("shop.a",)), "Open: shop.a."),
        (WatermarkAdvanced("shop.a", "2026-03-01T06:00:00+00:00"), "shop.a: complete up to 2026-03-01T06:00:00+00:00"),
    ],
)
def test_events_as_lines(event: Event, line: str | None) -> None:
    assert progress.plain_line(event) == line


def test_without_a_terminal_lines_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    events = Events()
    with progress.following(Invocation(), events):
        events.emit(FINISHED)
    events.emit(FAILED)
    assert capsys.readouterr() == ("", "shop.a: DIFFERENTIAL +12 −3 in 250 ms\n")


@pytest.mark.parametrize(
    ("raised", "goes_on", "lines"),
    [
        (UserError(FAILED.code, FAILED.message), False, ["shop.b: failed"]),
        (
            UserError("X", "Another table failed."),
            False,
            ["shop.b: failed", f"shop.b: [{FAILED.code}] {FAILED.message}"],
        ),
        (None, False, ["shop.b: failed", f"shop.b: [{FAILED.code}] {FAILED.message}"]),
        (None, True, [f"shop.b: failed [{FAILED.code}] {FAILED.message}"]),
    ],
)
def test_without_a_terminal_a_reason_is_given_once(
    capsys: pytest.CaptureFixture[str], raised: UserError | None, goes_on: bool, lines: list[str]
) -> None:
    events = Events()
    with suppress(UserError), progress.following(Invocation(), events, goes_on=goes_on):
        events.emit(FAILED)
        if raised is not None:
            raise raised  # who gets it tells the reason
    assert capsys.readouterr().err.splitlines() == lines


@pytest.mark.parametrize("asked", [Invocation(quiet=True), Invocation(json=True)])
def test_quiet_and_json_show_no_progress(asked: Invocation, capsys: pytest.CaptureFixture[str]) -> None:
    events = Events()
    with progress.following(asked, events):
        events.emit(FINISHED)
    assert capsys.readouterr() == ("", "")


def test_the_board_shows_stages_of_what_runs_and_rows_of_what_finished() -> None:
    board = progress.Board()
    for event in (STARTED, FINISHED, RefreshStarted("shop.b", "FULL", "COST"), StageStarted("shop.b", "apply")):
        board.note(event)
    text = _drawn(board)
    assert "✓" in text
    assert "+12 −3" in text
    assert "250 ms" in text
    assert "apply" in text
    board.note(FAILED)
    assert "✗" in _drawn(board)


def test_a_table_refreshed_again_starts_a_new_line() -> None:
    board = progress.Board()
    for event in (STARTED, FINISHED, STARTED):
        board.note(event)
    assert [line.finished for line in board.lines()] == [None]


def test_many_finished_tables_are_summed_up() -> None:
    board = progress.Board()
    for number in range(progress.FINISHED_SHOWN + 5):
        board.note(RefreshFinished(f"shop.t{number}", "FULL", 1, 0, 0.1))
    assert "… 5 more finished" in _drawn(board)


def test_a_failure_leaves_what_was_done_on_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(file=StringIO(), force_terminal=True, width=100, color_system=None)
    monkeypatch.setattr(progress, "stderr", lambda: console)
    events = Events()

    def refresh() -> None:
        with progress.following(Invocation(), events):
            events.emit(Notice("Fetching jars"))
            events.emit(STARTED)
            events.emit(FINISHED)
            raise UserError("X", "Another table failed.")

    with pytest.raises(UserError):
        refresh()
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "Fetching jars" in text
    assert "✓  shop.a  DIFFERENTIAL  +12 −3  250 ms" in text


def _drawn(board: progress.Board) -> str:
    console = Console(file=StringIO(), width=100)
    console.print(progress.Display(board, "Working"))
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]
