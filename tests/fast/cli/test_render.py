"""Renderers: what stands in the tables, and that they fit 100 columns."""

import dataclasses
import math
from collections.abc import Iterable
from io import StringIO

import pytest
from fast.cli.samples import NOW, info, past, refreshed, refusal
from rich.console import Console, RenderableType

from headrace.api.schedules.event_log import LoggedEvent
from headrace.cli.console import write
from headrace.cli.render import answers, explanation, running, tables, validation
from headrace.project.doctor import Check, Outcome
from headrace.reasons import FullReason
from headrace.results.refresh_results import Explanation, Mode, Status, StrategyInfo, Validation, VerifyResult
from headrace.results.repair_results import RepairResult
from headrace.statements.grammar import parse_script


def drawn(parts: Iterable[RenderableType]) -> str:
    console = Console(file=StringIO(), width=100, highlight=False)
    for part in parts:
        console.print(part)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= 100
    return text


def test_refreshes_show_mode_rows_time_and_the_reason_for_full() -> None:
    full = refreshed(
        "shop.b", mode=Mode.FULL, reason=FullReason.HISTORY_EXPIRED, detail="history of shop.orders is gone"
    )
    text = drawn(tables.refreshes([refreshed(), full]))
    assert "DIFFERENTIAL      1,204         3   310 ms" in text
    assert "history of shop.orders is gone" in text


def test_what_goes_elsewhere_than_a_terminal_is_not_wrapped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    full = refreshed(mode=Mode.FULL, reason=FullReason.HISTORY_EXPIRED, detail="longer than such a line")
    write(tables.refreshes([full]))
    (row,) = [line for line in capsys.readouterr().out.splitlines() if "shop.revenue" in line]
    assert "longer than such a line" in row


def test_a_full_refresh_without_detail_shows_the_reason_in_words() -> None:
    assert "first load" in drawn(tables.refreshes([refreshed(mode=Mode.FULL, reason=FullReason.FIRST_LOAD)]))


def test_nothing_to_refresh_is_said() -> None:
    assert drawn(tables.refreshes([])) == "Everything is up to date.\n"


def test_numbers_are_right_aligned() -> None:
    lines = drawn(tables.refreshes([refreshed(rows_inserted=1), refreshed(rows_inserted=1_000_000)])).splitlines()
    ends = [line.index(number) + len(number) for line, number in zip(lines[3:5], (" 1 ", "1,000,000 "), strict=True)]
    assert ends[0] == ends[1]


def test_status_tells_what_is_behind_stopped_failed_and_full_only() -> None:
    infos = [
        info(),
        info(
            "shop.new",
            status=Status.NEW,
            last_refresh=None,
            last_mode=None,
            last_seconds=None,
            rows=None,
            schedule=None,
        ),
        info(
            "shop.stopped", status=Status.STOPPED, stopped_reason="shop.orders lost its column amount; alter the query."
        ),
        info("shop.failed", last_error="[DIVIDE_BY_ZERO] division by zero", lag=90.0, target=60),
        info("shop.paused", held_up="paused"),
        info("shop.full", incremental=False, refusals=(refusal(),)),
    ]
    text = drawn(tables.standing(infos, NOW))
    assert "6,001,215" in text
    assert "3 min ago" in text
    assert "never" in text
    assert "shop.stopped is stopped: shop.orders lost its column amount; alter the query." in text
    assert "shop.failed failed last time: [DIVIDE_BY_ZERO] division by zero" in text
    assert "shop.full is refreshed in full: rand() is not a function of the sources" in text
    assert "1 min 30 s" in text
    assert "shop.paused is not refreshed by schedule: paused" in text


def test_status_says_where_tables_move_one_by_one() -> None:
    said = "changes one table at a time"
    assert said in drawn(tables.standing([info(eventual=True), info("shop.other", eventual=True)], NOW))
    assert said not in drawn(tables.standing([info()], NOW))


def test_status_of_an_empty_project_says_how_to_go_on() -> None:
    assert "headrace create --help" in drawn(tables.standing([], NOW))


def test_history_shows_reasons_and_errors() -> None:
    failed = past(ok=False, reason=None, error_code="DISK_FULL", error_message="The disk is full.", publication=None)
    text = drawn(tables.history([past(), failed]))
    assert "FIRST_LOAD" in text
    assert "DISK_FULL" in text
    assert "Nothing was refreshed yet." in drawn(tables.history([]))


def test_verification_shows_rows_that_differ() -> None:
    wrong = VerifyResult(
        "shop.b", False, 10, 1, 2, 0, 0.2, ({"weight": 1, "region": "EU"}, {"weight": -2, "region": None})
    )
    text = drawn(tables.verifications([VerifyResult("shop.a", True, 4, 0, 0, 3, 0.1), wrong]))
    assert "yes" in text
    assert "NO" in text
    assert "+1  region=EU" in text
    assert "−2  region=NULL" in text
    assert "3 rows differ only in the last digits" in text


def test_brackets_in_messages_are_not_markup() -> None:
    assert "[red]x[/]" in drawn(
        tables.refreshes([refreshed(mode=Mode.FULL, reason=FullReason.COST, detail="[red]x[/]")])
    )
    found = [Check("Java", Outcome.FAIL, "none [JAVA_MISSING]", "Install [one]")]
    assert "none [JAVA_MISSING]" in drawn(tables.checks(found))
    assert "→ Install [one]" in drawn(tables.checks(found))


def test_explanation_shows_mode_refusals_and_sections() -> None:
    found = Explanation("shop.b", Mode.FULL, FullReason.NOT_DETERMINISTIC, (refusal(),), (("SQL", "SELECT [1]"),))
    text = drawn(explanation.explanation(found))
    assert "shop.b: FULL (NOT_DETERMINISTIC: the query is not a function of its sources)" in text
    assert "! NOT_DETERMINISTIC rand() (line 1, column 8)" in text
    assert "Hint: Leave it out." in text
    assert "SELECT [1]" in text


@pytest.mark.parametrize("text", ["\n".join(map(str, range(900))), "\n".join(["x" * 90] * 140)])
def test_long_sections_are_cut_and_say_how_to_see_them_whole(text: str) -> None:
    found = Explanation(None, Mode.DIFFERENTIAL, None, (), (("short", "a\nb"), ("long", text)))
    cut, whole = (drawn(explanation.explanation(found, whole=whole)) for whole in (False, True))
    lines = text.count("\n") + 1
    assert f"… {lines} lines in all: `headrace explain --whole`" in cut
    assert text in whole
    assert "lines in all" not in whole
    assert len(cut) < explanation.CHARACTERS + 600
    assert cut.count("\n") < explanation.LINES + 10


def test_validation_shows_each_construct_or_what_stands_in_the_way() -> None:
    line = StrategyInfo("LEFT JOIN", "a = [b]", "rows are padded")
    text = drawn(validation.validation(Validation("SELECT …", Mode.DIFFERENTIAL, None, (), (line,), (), ())))
    assert "This query: DIFFERENTIAL" in text
    assert "LEFT JOIN" in text
    assert "a = [b]" in text
    query = "SELECT rand() AS r FROM t"
    reason = FullReason.NOT_DETERMINISTIC
    text = drawn(validation.validation(Validation(query, Mode.FULL, reason, (refusal(),), (), (), ())))
    assert "This query: FULL (NOT_DETERMINISTIC: the query is not a function of its sources)" in text
    assert f"1 | {query}\n           ^\nHint: Leave it out." in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "OK"),
        (True, "OK"),
        ((RepairResult("shop.a", "restored", "an append of somebody else's"),), "restored"),
        (("shop.a", "shop.b"), "shop.a, shop.b"),
        (refreshed(), "shop.revenue"),
        ((info(),), "ACTIVE"),
        (answers.Rows((), (), (), False), "OK"),
    ],
)
def test_answers_by_their_type(value: object, text: str) -> None:
    assert text in drawn(answers.answer(value))


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("REFRESH ALL STREAM TABLES", "Everything is up to date."),
        ("REPAIR ALL STREAM TABLES", "Nothing is damaged"),
        ("DROP SINK IF EXISTS s", "There was none."),
        ("SHOW SINKS", "There are none."),
    ],
)
def test_what_finds_nothing_says_so(script: str, text: str) -> None:
    (statement,) = parse_script(script)
    assert text in drawn(answers.nothing(statement))
    assert [answers.is_nothing(value) for value in ((), [], False, None, True, "", (1,))] == [True] * 3 + [False] * 4


def test_rows_keep_duplicate_columns_and_say_when_there_are_more() -> None:
    rows = answers.Rows(("a", "a"), ("int", "string"), ((1, None), (22, "x")), True)
    text = drawn(answers.rows(rows))
    assert "NULL" in text
    assert "2 rows shown; there are more (--limit)" in text
    assert rows.as_dict() == {
        "columns": ["a", "a"],
        "types": ["int", "string"],
        "rows": [[1, None], [22, "x"]],
        "more": True,
    }


def test_every_result_has_a_json_form() -> None:
    assert answers.document((refreshed(),))[0]["mode"] == "DIFFERENTIAL"
    assert answers.document("x") == "x"
    assert set(refreshed().as_dict()) == {field.name for field in dataclasses.fields(refreshed())}


def test_a_blown_fuse_and_what_was_skipped_are_said() -> None:
    evidence = "60 rows changed in its sources (60 of shop.orders), more than 50 (fuse_ceiling)."
    text = " ".join(drawn(tables.standing([info(fuse=evidence, held_up="stopped by its fuse")], NOW)).split())
    assert f"shop.revenue is stopped by its fuse: {evidence} Look, then headrace fuse shop.revenue apply" in text
    skipped = {"skipped_rows": 1200, "skipped_since": NOW}
    assert "1,200 changed rows of its sources were skipped" in " ".join(
        drawn(tables.standing([info(**skipped)], NOW)).split()
    )
    differs = VerifyResult("shop.a", False, 4, 1, 0, 0, 0.1, (), 1200, NOW)
    assert "--full repairs it" in " ".join(drawn(tables.verifications([differs])).split())


def test_an_event_is_a_line() -> None:
    event = LoggedEvent(
        1, NOW, "refresh_finished", {"table": "shop.a", "rows_inserted": 2, "seconds": 21.60989915799928}
    )
    line = running.event_line(event)
    assert line.endswith("  refresh_finished    table shop.a  rows_inserted 2  seconds 21.61 s")
    fields = {"table": "shop.a", "mode": "FULL", "rows_inserted": 2, "rows_deleted": 1, "seconds": 0.5}
    told = running.event_line(LoggedEvent(2, NOW, "refresh_finished", fields))
    assert told.endswith("  shop.a: FULL +2 −1 in 500 ms")


def test_numbers_that_json_has_not_are_texts_there() -> None:
    values = (math.nan, math.inf, -math.inf, 1.5, [{"x": math.nan}])
    rows = answers.Rows(("a", "b", "c", "d", "e"), ("double",) * 4 + ("array<map<string,double>>",), (values,), False)
    assert rows.as_dict()["rows"] == [["NaN", "Infinity", "-Infinity", 1.5, [{"x": "NaN"}]]]
