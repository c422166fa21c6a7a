"""What a cycle must be, and how it is refreshed: the decisions, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from kit.duck import DuckExecutor
from kit.maintained import table_name

from headrace.algebra.schema import Column
from headrace.compiler.compiled_view import CompiledView
from headrace.compiler.view_compiler import ViewCompiler
from headrace.definitions.details import Details, SourceUse, from_json, to_json
from headrace.errors import HeadraceError
from headrace.physical.facts import Facts, Obstacle, SourceFacts
from headrace.reasons import FullReason
from headrace.refresh.groups.cycle_rules import as_member, check_cycle, choose_cycle
from headrace.results.refresh_results import Mode, RefreshMode, RefusalInfo
from headrace.semantics import Semantics

COLUMNS = (Column("s", "int"), Column("d", "int"))
DUCK = DuckExecutor()
NAMES = ("a", "b", "edges", "walls")
for _name in NAMES:
    DUCK.define(_name, COLUMNS, [])

A = "SELECT s, d FROM edges UNION SELECT e.s, b.d FROM b JOIN edges AS e ON e.d = b.s"
B = "SELECT s, d FROM a WHERE NOT EXISTS (SELECT 1 FROM walls WHERE walls.s = a.d)"


def compiled(query: str) -> CompiledView:
    def describe(sql: str) -> tuple[Column, ...]:
        for name in NAMES:
            sql = sql.replace(table_name(name).sql, f"`{name}`")
        return DUCK.describe(sql)

    return ViewCompiler(
        resolve=lambda p: table_name(p[-1]), schema=lambda name: COLUMNS, describe=describe, ansi=True
    ).compile(query)


def member(query: str, output: tuple[Column, ...] = COLUMNS) -> tuple[Details, CompiledView]:
    view = compiled(query)
    uses = tuple(SourceUse(source, COLUMNS) for source in view.sources)
    return as_member(Details(query, ("shop",), Semantics(), output, uses, {}, (), None)), view


def checked(**queries: str) -> None:
    members = {table_name(name): member(query) for name, query in queries.items()}
    check_cycle({n: d for n, (d, _) in members.items()}, {n: v for n, (_, v) in members.items()})


def refused(**queries: str) -> HeadraceError:
    with pytest.raises(HeadraceError) as caught:
        checked(**queries)
    return caught.value


def test_what_grows_and_removes_copies_somewhere_is_taken() -> None:
    checked(a=A, b=B)
    checked(a="SELECT s, d FROM edges UNION SELECT x.s, y.d FROM a AS x JOIN a AS y ON x.d = y.s")


def test_what_may_take_rows_back_is_refused_by_name_and_place() -> None:
    error = refused(a=A, b="SELECT s,\n  max(d) AS d FROM a GROUP BY s")
    assert error.code == "CYCLE_NOT_MONOTONE"
    assert "shop.b cannot be in a cycle: the aggregate max(d) over shop.a" in error.message
    assert error.place is not None
    assert (error.place.line, error.place.column) == (2, 3)


def test_what_keeps_all_copies_is_refused_by_its_path() -> None:
    error = refused(a="SELECT s, d FROM edges UNION ALL SELECT s, d FROM b", b=B)
    assert error.code == "CYCLE_KEEPS_COPIES"
    assert "shop.a reads shop.b reads shop.a" in error.message


def test_what_is_not_read_as_algebra_is_refused() -> None:
    details, view = member(A)
    refusal = RefusalInfo(FullReason.NOT_DETERMINISTIC, "rand()", "rand() is no function.", 1, 8, "Leave it out.")
    with pytest.raises(HeadraceError) as caught:
        check_cycle({table_name("a"): replace(details, refusals=(refusal,))}, {table_name("a"): view})
    assert (caught.value.code, caught.value.hint) == ("CYCLE_NOT_MONOTONE", "Leave it out.")
    assert caught.value.place is not None
    assert caught.value.place.column == 8


def test_members_share_their_settings() -> None:
    (a, view_a), (b, view_b) = member(A), member(B)
    elsewhere = replace(b, semantics=Semantics(time_zone="Europe/Vienna"))
    with pytest.raises(HeadraceError) as caught:
        check_cycle(
            {table_name("a"): a, table_name("b"): elsewhere}, {table_name("a"): view_a, table_name("b"): view_b}
        )
    assert caught.value.code == "CYCLE_SETTINGS_DIFFER"


def test_columns_that_others_read_must_stay() -> None:
    (a, view_a), (b, view_b) = member(A), member(B)
    for output in ((COLUMNS[0],), (COLUMNS[0], Column("d", "string"))):
        with pytest.raises(HeadraceError) as caught:
            check_cycle(
                {table_name("a"): replace(a, output=output), table_name("b"): b},
                {table_name("a"): view_a, table_name("b"): view_b},
            )
        assert caught.value.code == "SOURCE_SCHEMA_CHANGED"


def test_a_definition_remembers_that_it_is_a_member() -> None:
    details, _ = member(A)
    assert from_json(to_json(details)).cyclic
    before = {key: value for key, value in to_json(details).items() if key != "cyclic"}
    assert not from_json(before).cyclic  # as an older version wrote it


# ---- how it is refreshed


def facts(name: str, changes: Mapping[str, bool | None], **more: object) -> tuple[Facts, CompiledView]:
    """Facts of a member whose outside sources changed: True for gained rows, False for lost ones, None for none."""
    details, view = member({"a": A, "b": B}[name])
    sources = tuple(
        SourceFacts(table_name(s), "x", "x", 1, None if gained is None else s, appended=gained is True)
        for s, gained in changes.items()
    )
    values: dict[str, object] = {"state_rows": 1, "companion": None, "log": None, "version": 3, **more}
    return Facts(table_name(name), details, RefreshMode.AUTO, sources, **values), view  # type: ignore[arg-type]


def chosen(*members: tuple[Facts, CompiledView], gained: bool = False) -> tuple[Mode, FullReason | None, str]:
    views = {own.name: view for own, view in members}
    found = choose_cycle([own for own, _ in members], views, lambda _: gained)
    return found.mode, found.reason, found.detail or ""


def test_nothing_changed() -> None:
    assert chosen(facts("a", {"edges": None}), facts("b", {"walls": None}))[0] is Mode.NO_CHANGE


def test_gained_rows_go_on_from_what_is_there() -> None:
    assert chosen(facts("a", {"edges": True}), facts("b", {"walls": None}))[0] is Mode.DIFFERENTIAL


def test_a_change_that_turns_out_to_have_only_gained_rows_does_too() -> None:
    assert chosen(facts("a", {"edges": False}), facts("b", {"walls": None}), gained=True)[0] is Mode.DIFFERENTIAL


def test_lost_rows_start_from_nothing() -> None:
    mode, reason, detail = chosen(facts("a", {"edges": False}), facts("b", {"walls": None}))
    assert (mode, reason, detail) == (Mode.FULL, FullReason.CYCLE_SHRANK, "shop.edges lost rows that shop.a read")


def test_so_do_gained_rows_that_take_others_away() -> None:
    mode, reason, detail = chosen(facts("a", {"edges": None}), facts("b", {"walls": True}))
    assert (mode, reason) == (Mode.FULL, FullReason.CYCLE_SHRANK)
    assert detail == "shop.b has NOT EXISTS, NOT IN or ANTI JOIN over shop.walls, which changed"


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"version": None}, FullReason.FIRST_LOAD),
        ({"forced": True}, FullReason.FORCED),
        ({"obstacle": Obstacle(FullReason.DEFINITION_CHANGED, "changed")}, FullReason.DEFINITION_CHANGED),
    ],
)
def test_what_one_member_needs_all_get(more: dict[str, object], reason: FullReason) -> None:
    assert chosen(facts("a", {"edges": True}), facts("b", {"walls": None}, **more))[:2] == (Mode.FULL, reason)


def test_differential_is_no_promise_where_rows_were_lost() -> None:
    own, view = facts("a", {"edges": False})
    assert chosen((replace(own, refresh_mode=RefreshMode.DIFFERENTIAL), view))[0] is Mode.FULL
