"""What lake statements say, and the choice among them."""

import datetime as dt
from dataclasses import replace

import pytest
import sqlglot

from headrace.algebra.schema import Column
from headrace.errors import Unsupported
from headrace.lake.apply_change import MEASURES, Method, Target, measures_for, plan_apply, plan_log
from headrace.lake.bag_delete import LOCATOR_COLUMNS, locator
from headrace.lake.compare import consolidate, incomparable, key_expressions, same
from headrace.lake.maintenance_tasks import Policy, plan_maintenance
from headrace.lake.measured_change import Change, Spread, change_of, match, measures
from headrace.lake.metadata import parse_metadata
from headrace.lake.pins import plan_pins
from headrace.lake.tables import create_log, create_table, new_suffix, stored_names, table_location
from headrace.names import TableName

T = TableName("staging", ("shop",), "t")
ID, NAME, PRICE, RATE = (
    Column("id", "bigint"),
    Column("na`me", "string"),
    Column("price", "decimal(12,2)"),
    Column("rate", "double"),
)
COLUMNS = (ID, NAME, PRICE, RATE)
BIG = 6_000_000


def change(inserted=5, deleted=5, spreads=None):
    return Change("moved", inserted, deleted, inserted + deleted, spreads or {})


def target(key=None, rows=BIG, columns=COLUMNS):
    return Target(T, columns, key, rows)


@pytest.mark.parametrize(
    ("where", "moved", "method", "commits"),
    [
        (target(), change(0, 0), Method.NOTHING, 0),
        (target(), change(5, 0), Method.APPEND, 1),
        (target(rows=100), change(), Method.OVERWRITE, 1),
        (target(key=("id",), rows=100), change(), Method.OVERWRITE, 1),
        (target(key=("id",), rows=5), change(), Method.OVERWRITE, 1),
        (target(key=("id",)), change(), Method.DELETE_BY_KEY, 2),
        (target(key=("id",)), change(0, 5), Method.DELETE_BY_KEY, 1),
        (target(), change(), Method.DELETE_ROWS, 2),
        (target(rows=None), change(), Method.DELETE_ROWS, 2),
    ],
)
def test_the_way_is_chosen_by_size_and_key(where, moved, method, commits):
    plan = plan_apply(where, moved)
    assert (plan.method, len(plan.statements)) == (method, commits)
    assert plan.growth == moved.inserted - moved.deleted
    for statement in plan.statements:
        assert sqlglot.parse_one(statement, dialect="spark")


def test_a_bag_is_first_searched_by_its_most_telling_cheap_columns():
    spreads = {"id": Spread(0, 900, "1", "99"), "na`me": Spread(0), "price": Spread(0, 1000), "rate": Spread(0)}
    plan = plan_apply(target(), change(spreads=spreads))
    assert [c.name for c in locator(target(), change(spreads=spreads)) or ()] == ["price", "id"]
    assert plan.bag is not None
    assert [a.columns for a in plan.bag.attempts] == [("price", "id"), ("id", "na`me", "price", "rate")]
    assert "`__hr_s`" not in plan.statements[0]


def attempts(spreads, deleted=5, **options):
    where = Target(T, COLUMNS, None, BIG, **options)
    bag = plan_apply(where, change(deleted=deleted, spreads=spreads)).bag
    assert bag is not None
    return [a.columns for a in bag.attempts]


def test_numbers_that_lie_close_together_are_looked_for_alone():
    everything = tuple(c.name for c in COLUMNS)
    orders = {"id": Spread(0, 1500, "0", "5999999"), "price": Spread(0, 5900)}
    assert attempts(orders, deleted=6000) == [("id",), ("price", "id"), everything]
    assert attempts(orders, deleted=1400)[0] == ("price", "id"), "each of its values would take along one more row"
    crowded, empty = Spread(0, 1500, "0", "599999"), Spread(1, 1500, "0", "5999999")
    assert attempts(orders | {"id": crowded}, deleted=6000)[0] != ("id",), "ten rows for each number"
    assert attempts(orders | {"id": empty}, deleted=6000)[0] != ("id",), "NULL may be anywhere"
    assert attempts(orders, deleted=6000, barred=frozenset({("id",)})) == [("price", "id"), everything]


def test_a_known_key_is_looked_for_first():
    everything = tuple(c.name for c in COLUMNS)
    assert attempts({}, unique=(("na`me",), ("ID", "price"))) == [("id", "price"), everything]
    assert attempts({}, unique=(("na`me",),)) == [everything], "texts are slow to compare"


def test_a_locator_is_short_and_needs_measured_columns():
    many = tuple(Column(f"c{i}", "bigint") for i in range(9))
    spreads = {c.name: Spread(0, 10) for c in many}
    assert len(locator(target(columns=many), change(spreads=spreads)) or ()) == LOCATOR_COLUMNS
    assert locator(target(columns=many), change()) is None
    assert locator(target(columns=many, rows=1000), change(spreads=spreads)) is None


def test_a_column_that_had_no_null_at_its_definition_may_have_one_now():
    strict = (Column("id", "bigint", nullable=False), Column("amount", "int", nullable=False))
    spreads = {"id": Spread(0, 9, "1", "9"), "amount": Spread(1, 9)}
    for columns in (strict, strict[1:]):
        text = match(change(spreads=spreads), columns)
        assert "`amount` IS NULL" in text or "__hr_s.`amount` <=> __hr_c.`amount`" in text


RATE_MAP = Column("rates", "map<string,double>")


def test_equality_is_null_safe_unless_no_removed_row_has_a_null():
    spreads = {"id": Spread(0, 9, "1", "9"), "price": Spread(2, 9)}
    for columns in ((ID, RATE_MAP), (PRICE, RATE_MAP)):
        text = match(change(spreads=spreads), columns)
        assert ("__hr_s.`id` BETWEEN 1 AND 9" in text) == (ID in columns)
        assert ("__hr_s.`id` = __hr_c.`id`" in text) == (ID in columns)
        assert ("__hr_s.`price` <=> __hr_c.`price`" in text) == (PRICE in columns)


def test_several_short_columns_are_looked_up_by_one_hash_and_compared_exactly():
    spreads = {"id": Spread(0, 9, "1", "9"), "price": Spread(2, 9)}
    text = match(change(spreads=spreads), (ID, NAME, PRICE))
    assert "xxhash64(__hr_s.`id`, __hr_s.`price`) = xxhash64(__hr_c.`id`, __hr_c.`price`)" in text
    assert "__hr_s.`id` >= __hr_c.`id` AND __hr_s.`id` <= __hr_c.`id`" in text
    assert "OR (__hr_s.`price` IS NULL AND __hr_c.`price` IS NULL)" in text
    assert " = __hr_c" not in text
    assert "<=>" not in text


def test_measures_and_what_they_said_fit_together():
    asked = measures((*COLUMNS, Column("day", "date")))
    days = {"low_4": 20454, "high_4": 20462}
    answers = dict.fromkeys(asked, 3) | {"rows": 4} | days
    found = change_of("v", answers, (*COLUMNS, Column("day", "date")))
    assert (found.rows, found.inserted, found.spreads["id"]) == (4, 3, Spread(3, 3, "3", "3"))
    assert found.spreads["day"] == Spread(3, 3, "DATE'2026-01-01'", "DATE'2026-01-09'")
    assert change_of("v", {"rows": 1, "inserted": 1, "deleted": 0}).spreads == {}


@pytest.mark.parametrize(
    ("key", "rows", "append_only", "measured"),
    [
        (None, 10, False, set()),  # all rows are written anew
        (None, 300_000, False, {"nulls", "low", "high"}),
        (None, 1_000_000, False, {"nulls", "low", "high", "distinct"}),
        (None, None, False, {"nulls", "low", "high", "distinct"}),
        (("id",), 1_000_000, False, {"nulls", "low", "high"}),
        (None, 1_000_000, True, set()),
    ],
)
def test_only_that_is_measured_which_may_decide_how_rows_are_found(key, rows, append_only, measured):
    asked = measures_for(Target(T, (ID, NAME), key, rows, append_only=append_only))
    assert {name.partition("_")[0] for name in asked if name.endswith("_0")} == measured
    assert set(MEASURES) <= set(asked)
    assert not any(name.endswith("_1") for name in asked) or key is None


@pytest.mark.parametrize(
    ("low", "high", "bounds"),
    [
        (5, 5_999_000, ("0", "6291455")),
        (70_000, 5_998_321, ("0", "6291455")),
        (-3, 4, ("-3", "4")),
        (2**63 - 9_000, 2**63 - 1, (str(2**63 - 9216), str(2**63 - 1))),
        (None, None, (None, None)),
    ],
)
def test_bounds_are_moved_outward_so_that_statements_stay_the_same(low, high, bounds):
    asked = {"rows": 1, "inserted": 0, "deleted": 1, "nulls_0": 0, "low_0": low, "high_0": high}
    spread = change_of("v", asked, (ID,)).spreads["id"]
    assert (spread.low, spread.high) == bounds


@pytest.mark.parametrize(
    ("low", "high", "bounds"),
    [
        (20454, 20462, ("DATE'2026-01-01'", "DATE'2026-01-09'")),
        (-719162, -719162, ("DATE'0001-01-01'", "DATE'0001-01-01'")),
        (2932896, 2932896, ("DATE'9999-12-31'", "DATE'9999-12-31'")),
        (2932896, 2932897, (None, None)),
        (-735000, 20454, (None, None)),
    ],
)
def test_days_that_python_does_not_know_bound_nothing(low, high, bounds):
    asked = {"rows": 1, "inserted": 0, "deleted": 1, "nulls_0": 0, "low_0": low, "high_0": high}
    spread = change_of("v", asked, (Column("day", "date"),)).spreads["day"]
    assert (spread.low, spread.high) == bounds


def test_maps_have_stand_ins_and_floats_need_none():
    assert len(key_expressions(RATE)) == 1
    (text,) = key_expressions(Column("m", "map<string,array<struct<x:double,y:map<int,float>>>>"), "s")
    assert text.count("map_entries") == 2
    assert sqlglot.parse_one(f"SELECT {text}", dialect="spark")
    assert same((Column("k", "int", nullable=False),), "a", "b") == "a.`k` = b.`k`"
    assert same((), "a", "b") == "TRUE"


def test_consolidating_returns_the_values_themselves():
    text = consolidate("SELECT * FROM t", (ID, RATE))
    assert text.startswith("SELECT `id`, any_value(`rate`) AS `rate`, sum(`__hr_w`)")
    assert "GROUP BY `id`, `rate`" in text
    assert "GROUP BY" not in consolidate("SELECT * FROM t", ())


@pytest.mark.parametrize("type_", ["variant", "array<variant>", "void"])
def test_some_types_cannot_be_compared(type_):
    column = Column("x", type_)
    assert incomparable((ID, column)) == ("x",)
    with pytest.raises(Unsupported, match="TYPE_NOT_COMPARABLE"):
        plan_apply(target(columns=(ID, column)), change())


def test_a_log_line_has_weight_and_version():
    text = plan_log(T, (ID,), change(), 7)
    assert text == (
        "INSERT INTO `staging`.`shop`.`t` SELECT `id`, CAST(__hr_w AS BIGINT), CAST(7 AS BIGINT) FROM `moved`"
    )


def test_names_and_locations_never_collide():
    name = TableName("lake", ("shop", "eu"), "t")
    suffix = new_suffix()
    first, second = stored_names(name, suffix), stored_names(name, new_suffix())
    assert first.log != second.log
    assert str(first.state) == "staging.shop.eu.t"
    assert table_location("/w/", first.state, "s1") == "/w/shop/eu/t-s1"
    assert table_location("s3://b/w", first.log, suffix) == f"s3://b/w/_headrace/shop_eu_t_{suffix}_log"


def test_creating_says_everything():
    text = create_table(T, (ID, NAME), location="/w/it's", format_version=3)
    assert "`na``me` string" in text
    assert "LOCATION '/w/it\\'s'" in text
    assert "'write.metadata.delete-after-commit.enabled' = 'false'" in text
    assert "'write.delete.mode' = 'merge-on-read'" in text
    log = create_log(T, (ID,), location="/w/l", format_version=2)
    assert "(`id` bigint, `__hr_w` bigint, `__hr_version` bigint)" in log
    assert "merge-on-read" not in log


@pytest.mark.parametrize(
    ("type_", "version"), [("variant", 2), ("void", 2), ("interval day to second", 3), ("array<interval year>", 3)]
)
def test_a_type_the_format_cannot_hold_is_refused(type_, version):
    with pytest.raises(Unsupported, match="TYPE_NOT_STORABLE"):
        create_table(T, (Column("x", type_),), location="/w", format_version=version)


def meta(snapshots, current, refs=None):
    return parse_metadata(
        "x",
        {
            "format-version": 3,
            "location": "/w",
            "schemas": [{"schema-id": 0, "fields": []}],
            "current-schema-id": 0,
            "current-snapshot-id": current,
            "refs": {n: {"snapshot-id": s} for n, s in (refs or {}).items()},
            "snapshots": [
                {
                    "snapshot-id": i,
                    "parent-snapshot-id": i - 1 or None,
                    "sequence-number": i,
                    "timestamp-ms": i * 1000,
                    "summary": {"operation": "append", **s},
                }
                for i, s in snapshots.items()
            ],
        },
    )


LATER = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
POLICY = Policy(keep=dt.timedelta(days=7), orphan_age=dt.timedelta(days=3))


def test_expiry_spares_current_needed_tagged_and_young_snapshots():
    table = meta({i: {} for i in range(1, 7)}, 6, {"main": 6, "mine": 2})
    (task,) = plan_maintenance(T, table, needed={4}, now=LATER, policy=POLICY)
    assert "ARRAY(1L, 3L, 5L)" in task.sql
    at_four = dt.datetime.fromtimestamp(4.5, dt.UTC)
    (task,) = plan_maintenance(T, table, needed={1}, now=at_four, policy=replace(POLICY, keep=dt.timedelta(0)))
    assert "ARRAY(3L)" in task.sql


@pytest.mark.parametrize(
    ("summary", "due"),
    [
        ({"total-data-files": "50", "total-files-size": "5000", "total-records": "9"}, True),
        ({"total-data-files": "50", "total-files-size": str(50 << 30), "total-records": "9"}, False),
        ({"total-data-files": "1", "total-records": "100", "total-position-deletes": "30"}, True),
        ({"total-data-files": "1", "total-records": "100", "total-position-deletes": "3"}, False),
    ],
)
def test_compaction_is_due_for_small_files_or_many_deletes(summary, due):
    tasks = plan_maintenance(T, meta({1: summary}, 1), needed=set(), now=LATER, policy=POLICY)
    assert ["rewrite_data_files" in t.sql for t in tasks] == ([True] if due else [])


def test_pins_change_only_what_is_not_so_already():
    table = meta({1: {}, 2: {}, 3: {}}, 3, {"main": 3, "headrace-me-1": 1, "headrace-me-2": 2, "mine": 1})
    assert plan_pins(T, table, {2}, "me") == ("ALTER TABLE `staging`.`shop`.`t` DROP TAG IF EXISTS `headrace-me-1`",)
    create, _, _ = plan_pins(T, table, {3, 99}, "me")
    assert create == "ALTER TABLE `staging`.`shop`.`t` CREATE OR REPLACE TAG `headrace-me-3` AS OF VERSION 3"


def test_pins_of_others_are_left_and_former_ones_go_when_there_are_new_ones():
    table = meta({1: {}, 2: {}, 3: {}}, 3, {"headrace-you-1": 1, "headrace_2": 2, "headrace_3": 3, "headrace_x": 1})
    assert plan_pins(T, table, set(), "me") == ()
    assert plan_pins(T, table, {2}, "me", {1, 2}) == (
        "ALTER TABLE `staging`.`shop`.`t` CREATE OR REPLACE TAG `headrace-me-2` AS OF VERSION 2",
        "ALTER TABLE `staging`.`shop`.`t` DROP TAG IF EXISTS `headrace_2`",
    )


def test_a_pin_that_somebody_moved_is_put_back():
    table = meta({1: {}, 2: {}}, 2, {"headrace-me-1": 2})
    (statement,) = plan_pins(T, table, {1}, "me")
    assert statement.endswith("CREATE OR REPLACE TAG `headrace-me-1` AS OF VERSION 1")
