"""Types are filled in from what the engine says, and branches of a union are cast to the union's."""

from __future__ import annotations

from fast.sql.reading_cases import resolve, schema

from headrace.algebra.relations import Aggregate, Project, Relation, Scan, Union
from headrace.algebra.schema import Column
from headrace.algebra.text import text
from headrace.algebra.tree import walk
from headrace.sql.reader.argument_types import with_types
from headrace.sql.reader.reader import read


def typed(query: str, types: dict[str, str]) -> Relation:
    """The tree, when columns have these types, by name."""
    tree = read(query, resolve=resolve, schema=schema).tree
    assert tree is not None
    return with_types(tree, lambda r: tuple(Column(name, types.get(name, "int")) for name in r.columns))


def test_calls_know_their_types() -> None:
    tree = typed(
        "SELECT region, sum(amount), count(*) FROM orders GROUP BY region",
        {"amount": "decimal(12,2)", "sum_amount": "decimal(22,2)", "count_all": "bigint"},
    )
    (aggregate,) = (node for node in walk(tree) if isinstance(node, Aggregate))
    assert [(c.function, c.argument_type, c.type) for c in aggregate.calls] == [
        ("sum", "decimal(12,2)", "decimal(22,2)"),
        ("count", None, "bigint"),
    ]


def test_branches_of_other_types_are_cast() -> None:
    tree = read("SELECT a, b FROM t UNION ALL SELECT id, region FROM orders", resolve=resolve, schema=schema).tree
    assert tree is not None

    def describe(relation: Relation) -> tuple[Column, ...]:
        wide = isinstance(relation, Union) or any(
            isinstance(n, Scan) and n.source.table == "orders" for n in walk(relation)
        )
        return tuple(
            Column(name, kind if wide else "int")
            for name, kind in zip(relation.columns, ("bigint", "int"), strict=True)
        )

    assert text(with_types(tree, describe)).splitlines() == [
        "Union",
        "  Project [CAST(`a` AS bigint) AS a, b]",
        "    Project [`t.a` AS a, `t.b` AS b]",
        "      Scan shop.t AFTER [a AS t.a, b AS t.b]",
        "  Project [`orders.id` AS id, `orders.region` AS region]",
        "    Scan shop.orders AFTER [id AS orders.id, region AS orders.region]",
    ]


def test_a_chain_is_cast_step_by_step() -> None:
    own = {"`t.a`": "date", "`t.b`": "string", "`t.c`": "timestamp"}

    def describe(relation: Relation) -> tuple[Column, ...]:
        found = [type_ for name, type_ in own.items() if name in text(relation)]
        type_ = found[0] if len(found) == 1 else {2: "date", 3: "timestamp"}[len(found)]
        return (Column(relation.columns[0], type_),)

    def cast(query: str) -> list[str]:
        tree = read(query, resolve=resolve, schema=schema).tree
        assert tree is not None
        return [line.strip() for line in text(with_types(tree, describe)).splitlines() if "CAST" in line]

    assert cast("SELECT a FROM t UNION ALL SELECT b FROM t UNION ALL SELECT c FROM t") == [
        "Project [CAST(`a` AS timestamp_ltz) AS a]",
        "Project [CAST(CAST(`b` AS date) AS timestamp_ltz) AS b]",
    ]


def test_equal_branches_stay() -> None:
    tree = typed("SELECT a FROM t UNION ALL SELECT b FROM t", {})
    assert isinstance(tree, Union)
    assert all(isinstance(branch, Project) and isinstance(branch.input, Scan) for branch in tree.branches)


def test_fields_of_structs_keep_their_names() -> None:
    tree = read("SELECT a FROM t UNION ALL SELECT id FROM orders", resolve=resolve, schema=schema).tree
    assert tree is not None

    def describe(relation: Relation) -> tuple[Column, ...]:
        of_orders = not isinstance(relation, Union) and "orders" in text(relation)
        return (Column("a", f"struct<userId:{'int' if of_orders else 'bigint'},`content-type`:string>"),)

    typed = with_types(tree, describe)
    assert "CAST(`id` AS struct<userId:bigint,`content-type`:string>) AS id" in text(typed)
