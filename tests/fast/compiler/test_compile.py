"""From a text to a compiled view and its programs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kit.duck import DuckExecutor

from headrace.algebra.relations import Aggregate, Moment, Relation, Scan, SemiJoin, Stored
from headrace.algebra.schema import Column
from headrace.algebra.text import text
from headrace.algebra.tree import sources, walk
from headrace.compiler.compiled_view import CompiledView, DeltaProgram
from headrace.compiler.view_compiler import ViewCompiler
from headrace.errors import UserError
from headrace.names import LAKE, TableName
from headrace.reasons import FullReason
from headrace.sql.lower import lower

TABLES = {
    "orders": (
        Column("id", "int"),
        Column("customer", "int"),
        Column("region", "string"),
        Column("region_2", "string"),
    ),
    "customers": (Column("id", "int"), Column("name", "string"), Column("amount", "decimal(12,2)")),
    "lines": (Column("order_id", "int"), Column("price", "decimal(15,2)"), Column("weight", "double")),
    "notes": (Column("id", "int"), Column("k", "int"), Column("m", "map<string,string>")),
}
ORDERS, CUSTOMERS, LINES, NOTES = (TableName(LAKE, ("shop",), name) for name in TABLES)


@pytest.fixture(scope="module")
def executor() -> DuckExecutor:
    duck = DuckExecutor()
    for name, columns in TABLES.items():
        duck.define(name, columns, [])
    return duck


def compiled(executor: DuckExecutor, query: str, **options: Any) -> CompiledView:
    def describe(sql: str) -> tuple[Column, ...]:
        return executor.describe(sql.replace("`lake`.`shop`.", ""))

    def schema(name: TableName) -> tuple[Column, ...]:
        if name.table not in TABLES:
            raise UserError("TABLE_NOT_FOUND", f"{name} does not exist.")
        return TABLES[name.table]

    def resolve(parts: tuple[str, ...]) -> TableName:
        return TableName(LAKE, ("shop",), parts[-1])

    return ViewCompiler(resolve=resolve, schema=schema, **{"describe": describe, **options}).compile(query)


def program(view: CompiledView, *changed: TableName, **options: object) -> DeltaProgram:
    made = view.delta_program(frozenset(changed), **options)  # type: ignore[arg-type]
    assert made is not None
    return made


def scans(relation: Relation, moment: Moment) -> list[TableName]:
    return [node.source for node in walk(relation) if isinstance(node, Scan) and node.moment is moment]


def test_a_bag_needs_no_companion(executor: DuckExecutor) -> None:
    view = compiled(executor, "SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.id")
    assert view.sources == (ORDERS, CUSTOMERS)
    assert view.output == (Column("id", "int"), Column("name", "string"))
    assert view.companion is None
    assert view.full_program().state is None, "the user's own text is run"
    made = program(view, ORDERS)
    assert [step.name for step in made.steps] == ["change"]
    assert made.state.key is None
    assert made.companion is None


def test_only_changed_sources_cost_anything(executor: DuckExecutor) -> None:
    view = compiled(executor, "SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.id")
    assert view.delta_program(frozenset()) is None
    assert view.delta_program(frozenset({LINES})) is None
    (step,) = program(view, ORDERS).steps
    assert scans(step.relation, Moment.CHANGE) == [ORDERS]
    assert scans(step.relation, Moment.AFTER) == [CUSTOMERS]
    assert not scans(step.relation, Moment.BEFORE)


def test_columns_that_are_not_used_are_not_read(executor: DuckExecutor) -> None:
    view = compiled(executor, "SELECT id FROM orders WHERE customer = 1")
    (scan,) = (node for node in walk(program(view, ORDERS).steps[0].relation) if isinstance(node, Scan))
    assert [source for _, source in scan.fields] == ["id", "customer"]


def test_the_companion_holds_keys_and_accumulators(executor: DuckExecutor) -> None:
    view = compiled(
        executor, "SELECT region, region_2 AS other, avg(id) AS mean, sum(id) AS total FROM orders GROUP BY 1, 2"
    )
    assert view.companion == (
        Column("region", "string"),
        Column("region_2", "string"),
        Column("__hr_n", "bigint"),
        Column("__hr_1_count", "bigint"),
        Column("__hr_2_sum", "bigint"),
    ), "the sum and the count serve both calls"


def test_companion_columns_never_clash(executor: DuckExecutor) -> None:
    view = compiled(
        executor, "SELECT count(*) AS n FROM orders a JOIN orders b ON a.id = b.id GROUP BY a.region, b.region"
    )
    assert view.companion is not None
    assert [c.name for c in view.companion] == ["region", "region_2", "__hr_n"]


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("SELECT region, count(*) AS n FROM orders GROUP BY region", ("region",)),
        ("SELECT count(*) AS n, region AS r FROM orders GROUP BY region", ("r",)),
        ("SELECT count(*) AS n FROM orders", ()),
        ("SELECT count(*) AS n FROM orders GROUP BY region", None),
        ("SELECT upper(region) AS r, count(*) AS n FROM orders GROUP BY region", None),
        ("SELECT DISTINCT region FROM orders", ("region",)),
        ("SELECT id FROM orders", None),
    ],
)
def test_what_identifies_a_row(executor: DuckExecutor, query: str, key: tuple[str, ...] | None) -> None:
    assert program(compiled(executor, query), ORDERS).state.key == key


def test_a_group_is_read_again_only_when_its_extreme_may_have_left(executor: DuckExecutor) -> None:
    view = compiled(executor, "SELECT region, max(id) AS m FROM orders GROUP BY region")
    steps = program(view, ORDERS).steps
    assert [step.name for step in steps] == ["touched", "rescanned", "change"]
    assert steps[1].only_if is not None
    assert any(isinstance(node, SemiJoin) for node in walk(steps[1].relation))
    gained = program(view, ORDERS, appended=frozenset({ORDERS})).steps
    assert [step.name for step in gained] == ["change"]
    assert not scans(gained[0].relation, Moment.AFTER)


def test_sums_never_read_their_groups_again_in_ansi_mode(executor: DuckExecutor) -> None:
    query = "SELECT customer, sum(amount) AS s FROM orders o JOIN customers c ON o.customer = c.id GROUP BY customer"
    assert [s.name for s in program(compiled(executor, query), ORDERS).steps] == ["change"]
    steps = program(compiled(executor, query, ansi=False), ORDERS).steps
    assert [s.name for s in steps] == ["touched", "rescanned", "change"], "a sum that outgrew its type is NULL"
    assert steps[1].only_if is not None


def test_floating_point_sums_are_recomputed(executor: DuckExecutor) -> None:
    view = compiled(executor, "SELECT order_id, sum(weight) AS w, count(*) AS n FROM lines GROUP BY order_id")
    assert [step.name for step in program(view, LINES).steps] == ["touched", "change"]
    assert scans(program(view, LINES).steps[1].relation, Moment.AFTER) == [LINES]


def test_the_largest_input_is_read_once(executor: DuckExecutor) -> None:
    view = compiled(
        executor,
        "SELECT l.price, c.name FROM lines l JOIN orders o ON l.order_id = o.id JOIN customers c ON o.customer = c.id",
    )
    sizes = {LINES: 6_000_000, ORDERS: 1_500_000, CUSTOMERS: 150_000}
    (step,) = program(view, LINES, ORDERS, CUSTOMERS, sizes=sizes).steps
    whole = scans(step.relation, Moment.AFTER) + scans(step.relation, Moment.BEFORE)
    assert whole.count(LINES) == 1


def test_a_large_companion_is_read_only_where_groups_are_touched(executor: DuckExecutor) -> None:
    view = compiled(executor, "SELECT order_id, count(*) AS n FROM lines GROUP BY order_id")
    assert [step.name for step in program(view, LINES).steps] == ["change"]
    steps = program(view, LINES, companion_rows=1_000_000).steps
    assert [step.name for step in steps] == ["added", "change"]
    assert any(isinstance(node, SemiJoin) for node in walk(steps[1].relation))


def test_a_change_leads_every_join(executor: DuckExecutor) -> None:
    view = compiled(
        executor, "SELECT o.id FROM orders o, customers c, lines l WHERE o.customer = c.id AND o.id = l.order_id"
    )
    (step,) = program(view, ORDERS, CUSTOMERS, LINES).steps
    sql = lower(
        step.relation, lambda leaf: f"{leaf.source.table}_{leaf.moment}" if isinstance(leaf, Scan) else leaf.name
    )
    assert sql.count("CROSS JOIN") == 0
    assert text(step.relation)


@pytest.mark.parametrize(
    "condition", ["id > (SELECT avg(id) FROM customers)", "EXISTS (SELECT * FROM customers WHERE id > 1)"]
)
def test_a_subquery_whose_value_stays_has_nothing_read_for_it(executor: DuckExecutor, condition: str) -> None:
    view = compiled(executor, f"SELECT id FROM orders WHERE {condition}")
    steps = {step.name: step for step in program(view, CUSTOMERS).steps}
    value, revalued = steps["value"], steps["revalued"]
    assert ORDERS not in sources(value.relation)
    assert ORDERS in sources(revalued.relation)
    assert revalued.only_if is not None
    assert {n for n in walk(revalued.only_if) if not n.inputs} == {Stored(value.name, value.relation.columns)}


def test_groups_are_computed_only_for_the_rows_they_are_joined_to(executor: DuckExecutor) -> None:
    query = "SELECT id FROM orders o WHERE o.id > (SELECT avg(l.order_id) FROM lines l WHERE l.order_id = o.customer)"
    (step,) = program(compiled(executor, query), ORDERS).steps
    averages = [
        n for n in walk(step.relation) if isinstance(n, Aggregate) and any(c.function == "avg" for c in n.calls)
    ]
    assert averages
    assert all(any(isinstance(node, SemiJoin) for node in walk(each)) for each in averages)


def test_what_is_not_maintained_is_refused_with_its_output(executor: DuckExecutor) -> None:
    view = compiled(executor, "SELECT o.id FROM orders o LIMIT 3 + 1")
    assert [refusal.code for refusal in view.refusals] == [FullReason.OPERATOR_NOT_MAINTAINED]
    assert view.tree is None
    assert view.output == (Column("id", "int"),)
    assert view.delta_program(frozenset({ORDERS})) is None
    assert view.full_program().state is None


@pytest.mark.parametrize(
    ("condition", "by_key"),
    [
        ("c.id = o.id", True),
        ("CAST(c.id AS BIGINT) = o.id", True),
        ("c.name = o.id", False),  # '1' and '01' are two groups, and both equal 1
        ("CAST(c.name AS INT) = o.id", True),
        ("c.amount = o.id", False),
        ("c.id < o.id", False),
    ],
)
def test_a_value_goes_by_a_key_of_its_own_only_where_nothing_is_cast(
    executor: DuckExecutor, condition: str, by_key: bool
) -> None:
    query = f"SELECT o.id, (SELECT max(c.amount) FROM customers AS c WHERE {condition}) AS most FROM orders AS o"
    tree = compiled(executor, query).tree
    assert tree is not None
    (grouped,) = (node for node in walk(tree) if isinstance(node, Aggregate) and node.calls)
    assert (TableName(LAKE, ("shop",), "orders") not in sources(grouped)) == by_key


@pytest.fixture
def mapped(executor: DuckExecutor) -> DuckExecutor:
    executor.connection.execute("CREATE OR REPLACE TABLE mapped (id INT, m MAP(INT, INT), j JSON)")
    TABLES["mapped"] = (Column("id", "int"), Column("m", "map<int,int>"), Column("j", "variant"))
    return executor


@pytest.mark.parametrize(
    ("query", "construct"),
    [
        ("SELECT m FROM mapped", "column of type map(integer, integer)"),
        ("SELECT count(*) AS n FROM mapped GROUP BY m", "groups by map(integer, integer)"),
        ("SELECT count(*) AS n FROM (SELECT DISTINCT id, m FROM mapped)", "groups by map(integer, integer)"),
        ("SELECT count(*) AS n FROM mapped GROUP BY map(id, id)", "groups by map(integer, integer)"),
    ],
)
def test_columns_without_equality_are_refused_where_they_are_compared(
    mapped: DuckExecutor, query: str, construct: str
) -> None:
    assert construct in [refusal.construct for refusal in compiled(mapped, query).refusals]


def test_an_unknown_table_is_the_users_mistake(executor: DuckExecutor) -> None:
    with pytest.raises(UserError, match="TABLE_NOT_FOUND"):
        compiled(executor, "SELECT 1 AS one FROM nowhere")


@pytest.mark.parametrize(
    ("code", "raised"), [("QUERY_INVALID", False), ("SPARK_UNSUPPORTED", False), ("TABLE_NOT_FOUND", True)]
)
def test_a_query_whose_rewritten_text_is_refused_is_not_maintained(code: str, raised: bool) -> None:
    query = "SELECT region, max(id) AS last FROM orders GROUP BY region"

    def describe(sql: str) -> tuple[Column, ...]:
        if sql != query:
            raise UserError(code, "Not so.")
        return (Column("region", "string"), Column("last", "int"))

    compiler = ViewCompiler(
        resolve=lambda parts: TableName(LAKE, ("shop",), parts[-1]),
        schema=lambda _: TABLES["orders"],
        describe=describe,
    )
    if raised:
        with pytest.raises(UserError, match=code):
            compiler.compile(query)
        return
    view = compiler.compile(query)
    assert (view.tree, view.sources, view.output) == (None, (ORDERS,), describe(query))
    (refusal,) = view.refusals
    assert (refusal.code, refusal.construct) == (FullReason.OPERATOR_NOT_MAINTAINED, "query")
    assert "Not so." in refusal.message


def test_what_is_refused_already_is_not_asked_for_its_types(executor: DuckExecutor) -> None:
    """Its text still has outer columns; a subquery read on trial must know of it, or a valid query ends in an error."""
    query = """
        WITH w AS (
            SELECT DISTINCT o.id AS k,
              (SELECT approx_percentile(c.id, 0.5) FROM customers AS c WHERE c.id = o.id) AS n
            FROM orders AS o
        )
        SELECT c.id FROM customers AS c JOIN w ON w.k = c.id WHERE c.id < 3 OR c.id IN (
            SELECT q.k FROM w AS q WHERE q.k < (SELECT max(c.amount) FROM customers AS c WHERE c.id < q.k)
        )"""
    view = compiled(executor, query)
    assert {r.construct for r in view.refusals} == {"approx_percentile()"}


def test_what_groups_remember_must_have_equality(executor: DuckExecutor) -> None:
    query = "SELECT k, max_by(m, id)['a'] AS a FROM notes GROUP BY k"
    view = compiled(executor, query, keys={NOTES: (("id",),)})
    assert [(each.code, each.construct) for each in view.refusals] == [
        (FullReason.OPERATOR_NOT_MAINTAINED, "groups with values of type map(varchar, varchar)")
    ]


def test_groups_by_a_value_without_a_type_are_not_kept(executor: DuckExecutor) -> None:
    def described(sql: str) -> tuple[Column, ...]:
        found = executor.describe(sql.replace("`lake`.`shop`.", ""))
        return tuple(replace(each, type="void") if "null" in each.type else each for each in found)

    query = "SELECT k, count(*) AS n FROM (SELECT id AS k, NULL AS channel FROM orders) AS x GROUP BY k, channel"
    view = compiled(executor, query, describe=described)
    assert [(each.code, each.construct, each.hint) for each in view.refusals] == [
        (
            FullReason.OPERATOR_NOT_MAINTAINED,
            "groups with values of type void",
            "Give NULL a type: CAST(NULL AS STRING).",
        )
    ]


def test_a_count_carries_no_values(executor: DuckExecutor) -> None:
    view = compiled(executor, "SELECT region, max(id) AS last, count(region_2) AS n FROM orders GROUP BY region")
    (change, *_) = program(view, ORDERS).steps
    assert "region_2` IS NOT NULL THEN true END AS " in text(change.relation)


def test_a_value_of_a_type_without_equality_is_not_grouped_by(mapped: DuckExecutor) -> None:
    def described(sql: str) -> tuple[Column, ...]:
        found = mapped.describe(sql.replace("`lake`.`shop`.", ""))
        return tuple(replace(each, type="variant") if each.type == "json" else each for each in found)

    value = "SELECT CAST(max(region) AS JSON) AS j FROM orders"
    query = f"SELECT o.id, CAST(v.j AS STRING) AS s FROM orders o CROSS JOIN ({value}) v"
    view = compiled(mapped, query, describe=described)
    grouped = (n for s in program(view, ORDERS).steps for n in walk(s.relation) if isinstance(n, Aggregate))
    assert not any(key.endswith("j") for node in grouped for key in node.keys)
