"""Which way each stretch of a table's history is read."""

from collections import Counter

import pytest

from headrace.lake.metadata import parse_metadata
from headrace.names import TableName
from headrace.reasons import FullReason
from headrace.sources.lakehouse.change_plan import (
    AllRows,
    AppendRange,
    ChangelogRange,
    ChangePlan,
    NotIncremental,
    PositionDiff,
    plan_changes,
)
from headrace.sources.lakehouse.changes_sql import changes_sql, rows_sql
from headrace.sources.lakehouse.evolved_types import absent
from headrace.sources.lakehouse.file_diff import FileDiff

T = TableName("lake", ("shop",), "t")

APPEND = {"operation": "append", "added-records": "10", "added-data-files": "1"}
COW = {"operation": "overwrite", "added-records": "9", "deleted-records": "10", "deleted-data-files": "1"}
MOR = {"operation": "overwrite", "added-records": "1", "added-position-deletes": "1", "added-delete-files": "1"}
DROP = {"operation": "delete", "deleted-records": "10", "deleted-data-files": "1"}
NOTHING = {"operation": "append", "changed-partition-count": "0"}
PACK = {"operation": "replace", "added-records": "40", "deleted-records": "40"}
FLINK = {"operation": "overwrite", "added-equality-deletes": "1", "added-delete-files": "1"}

SCHEMAS = [
    {"schema-id": 0, "fields": [{"id": 1, "name": "a", "required": False, "type": "int"}]},
    {
        "schema-id": 1,
        "fields": [
            {"id": 1, "name": "b", "required": False, "type": "long"},
            {"id": 2, "name": "c", "required": False, "type": "string"},
        ],
    },
]


def history(*summaries, parents=None, schema=0, only=None, counted=None):
    """Snapshots 1, 2, … each on top of the one before; totals, of those `counted`, follow from the changes."""
    snapshots, records, files, equality = [], 0, 0, 0
    for number, summary in enumerate(summaries, 1):
        count = Counter({name: int(n) for name, n in summary.items() if n.isdigit()})
        records += count["added-records"] - count["deleted-records"]
        files += count["added-delete-files"]
        equality += count["added-equality-deletes"] - count["deleted-equality-deletes"]
        totals = {
            "total-records": str(records + 1000),
            "total-delete-files": str(files),
            "total-equality-deletes": str(equality),
        }
        parent = (parents or {}).get(number, number - 1 or None)
        snapshots.append(
            {
                "snapshot-id": number,
                "parent-snapshot-id": parent,
                "sequence-number": number,
                "timestamp-ms": number,
                "schema-id": 0,
                "summary": totals | summary if counted is None or number in counted else summary,
            }
        )
    return parse_metadata(
        "x",
        {
            "format-version": 2,
            "table-uuid": "u",
            "location": "/w",
            "schemas": SCHEMAS,
            "current-schema-id": schema,
            "current-snapshot-id": len(summaries) or None,
            "snapshots": [s for s in snapshots if only is None or s["snapshot-id"] in only],
        },
    )


@pytest.mark.parametrize(
    ("summaries", "start", "end", "parts"),
    [
        ([APPEND] * 3, 1, 3, [AppendRange(1, 3)]),
        ([APPEND] * 3, 2, 2, []),
        ([APPEND] * 2, None, 2, [AllRows(2, 1)]),
        ([APPEND] * 2, 2, None, [AllRows(2, -1)]),
        ([APPEND, COW, APPEND], 1, 3, [ChangelogRange(1, 3)]),
        ([APPEND, DROP], 1, 2, [ChangelogRange(1, 2)]),
        ([APPEND, MOR], 1, 2, [PositionDiff(1, 2, True)]),
        ([APPEND, MOR, APPEND, MOR], 1, 4, [PositionDiff(1, 4, True)]),
        ([APPEND, MOR, COW], 2, 3, [PositionDiff(2, 3, True)]),
        ([APPEND, APPEND, MOR], 1, 3, [AppendRange(1, 2), PositionDiff(2, 3, True)]),
        ([APPEND, PACK], 1, 2, []),
        ([APPEND, NOTHING], 1, 2, []),
        ([APPEND, {"operation": "append", "added-records": "0"}], 1, 2, []),
        ([APPEND, NOTHING, APPEND], 1, 3, [AppendRange(1, 3)]),
        ([APPEND, MOR, PACK, MOR], 1, 4, [PositionDiff(1, 2, True), PositionDiff(3, 4, True)]),
        ([APPEND, FLINK, PACK, APPEND], 2, 4, [AppendRange(3, 4)]),
    ],
)
def test_each_stretch_is_read_the_cheapest_exact_way(summaries, start, end, parts):
    plan = plan_changes(history(*summaries), start, end)
    assert isinstance(plan, ChangePlan)
    assert list(plan.parts) == parts


@pytest.mark.parametrize(
    ("operations", "part"),
    [
        (["append"], AppendRange(1, 2)),
        (["append", "append"], AppendRange(1, 3)),
        (["overwrite"], PositionDiff(1, 2, True)),
        (["append", "delete"], PositionDiff(2, 3, True)),
    ],
)
def test_a_snapshot_without_counters_is_read_and_its_rows_are_not_known(operations, part):
    """A summary need have nothing but its operation."""
    table = history(APPEND, *[{"operation": operation} for operation in operations], counted={1})
    end = 1 + len(operations)
    plan = plan_changes(table, 1, end)
    assert isinstance(plan, ChangePlan)
    assert part in plan.parts
    assert plan.rows is None
    for start, after in ((None, end), (end, None), (end, 1)):
        plan = plan_changes(table, start, after)
        assert isinstance(plan, ChangePlan)
        assert plan.rows is None


def test_totals_that_begin_anew_do_not_tell_that_an_append_added_nothing():
    """After a snapshot without counters no difference of totals can be told."""
    table = history(APPEND, {"operation": "append"}, NOTHING, counted={1, 3})
    plan = plan_changes(table, 2, 3)
    assert isinstance(plan, ChangePlan)
    assert plan.parts == (AppendRange(2, 3),)


def test_a_table_has_one_range_of_each_kind_per_query():
    big = APPEND | {"added-records": "500"}
    plan = plan_changes(history(APPEND, APPEND, MOR, big), 1, 4)
    assert isinstance(plan, ChangePlan)
    assert plan.parts == (PositionDiff(1, 2, True), PositionDiff(2, 3, True), AppendRange(3, 4))


def test_a_file_rewritten_again_and_again_is_compared_once():
    rewrite = COW | {"added-records": "1000", "deleted-records": "1000"}
    plan = plan_changes(history(APPEND, *[rewrite] * 5), 1, 6)
    assert isinstance(plan, ChangePlan)
    assert plan.parts == (PositionDiff(1, 6, True),)


def test_rolled_back_history_is_compared():
    table = history(APPEND, APPEND, MOR, parents={3: 1})
    for start, end in ((2, 3), (3, 1), (2, 1)):
        plan = plan_changes(table, start, end)
        assert isinstance(plan, ChangePlan)
        assert plan.parts == (PositionDiff(start, end, linear=False),)


def test_expired_middle_is_compared_and_expired_ends_are_not():
    table = history(*[APPEND] * 4, only={1, 4})
    plan = plan_changes(table, 1, 4)
    assert isinstance(plan, ChangePlan)
    assert plan.parts == (PositionDiff(1, 4, linear=False),)
    for start, end in ((2, 4), (1, 3), (None, 2)):
        expired = plan_changes(table, start, end)
        assert isinstance(expired, NotIncremental)
        assert expired.reason is FullReason.HISTORY_EXPIRED


def test_a_recreated_table_is_another_table():
    found = plan_changes(history(APPEND), 1, 1, uuid="other")
    assert isinstance(found, NotIncremental)
    assert found.reason is FullReason.SOURCE_RECREATED


@pytest.mark.parametrize(("start", "end", "parents"), [(1, 2, None), (2, 3, {3: 1})])
def test_equality_deletes_cannot_be_read(start, end, parents):
    found = plan_changes(history(APPEND, FLINK, APPEND, parents=parents), start, end)
    assert isinstance(found, NotIncremental)
    assert found.reason is FullReason.SOURCE_NOT_INCREMENTAL


@pytest.mark.parametrize("then", [MOR, DROP, [APPEND, MOR]])
def test_rows_deleted_by_values_before_are_not_told_from_those_deleted_since(then):
    later = then if isinstance(then, list) else [then]
    found = plan_changes(history(APPEND, FLINK, *later), 2, 2 + len(later))
    assert isinstance(found, NotIncremental)
    assert found.reason is FullReason.SOURCE_NOT_INCREMENTAL


def test_a_compaction_that_removed_such_delete_files_is_a_base_as_any_other():
    packed = PACK | {"removed-equality-delete-files": "1", "deleted-equality-deletes": "1"}
    plan = plan_changes(history(APPEND, FLINK, packed, MOR), 3, 4)
    assert isinstance(plan, ChangePlan)
    assert plan.parts == (PositionDiff(3, 4, linear=True),)


def test_appends_after_rows_deleted_by_values_are_read():
    plan = plan_changes(history(APPEND, FLINK, APPEND, APPEND), 2, 4)
    assert isinstance(plan, ChangePlan)
    assert plan.parts == (AppendRange(2, 4),)


def test_a_deletion_vector_that_replaces_another_counts_for_what_it_adds():
    """However much was deleted before, a small delete stays a small change."""
    again = MOR | {"added-position-deletes": "50003", "removed-position-deletes": "50000", "removed-delete-files": "1"}
    plan = plan_changes(history(APPEND, again), 1, 2)
    assert isinstance(plan, ChangePlan)
    assert plan.rows == 4


@pytest.mark.parametrize(
    ("summary", "carried"), [(APPEND, False), (MOR, False), (DROP, False), (COW, True), (PACK, False)]
)
def test_rows_may_be_carried_over_where_files_are_rewritten(summary, carried):
    plan = plan_changes(history(APPEND, summary), 1, 2)
    assert isinstance(plan, ChangePlan)
    assert plan.carried == carried


def test_an_older_snapshot_is_read_under_todays_names_and_types():
    table = history(APPEND, schema=1)
    assert rows_sql(T, table, 1) == (
        "(SELECT CAST(`a` AS bigint) AS `b`, CAST(NULL AS string) AS `c` FROM `lake`.`shop`.`t` VERSION AS OF 1)"
    )
    assert rows_sql(T, history(APPEND), 1) == "`lake`.`shop`.`t` VERSION AS OF 1"
    assert rows_sql(T, table, None) == "(SELECT CAST(NULL AS bigint) AS `b`, CAST(NULL AS string) AS `c` WHERE false)"


def test_nothing_changed_is_no_query():
    assert changes_sql(T, history(APPEND), ChangePlan((), 0), ("a",)) is None


def test_a_difference_reads_only_what_differs():
    part = PositionDiff(1, 2, linear=True)
    files = {part: FileDiff(added=("/it's",), removed=(), touched=())}
    text = changes_sql(T, history(APPEND, MOR), ChangePlan((part,), 1), ("a",), files)
    assert text == ("SELECT `a`, 1L AS `__hr_w` FROM `lake`.`shop`.`t` VERSION AS OF 2 WHERE _file IN ('/it\\'s')")
    same = {part: FileDiff((), (), ())}
    assert changes_sql(T, history(APPEND, MOR), ChangePlan((part,), 1), ("a",), same) is None


def test_unreadable_manifests_leave_the_finding_to_the_query():
    part = PositionDiff(1, 2, linear=False)
    text = changes_sql(T, history(APPEND, MOR), ChangePlan((part,), 1), ("a",))
    assert text is not None
    assert text.count("EXCEPT") == 2
    assert text.count("position_deletes") == 2


@pytest.mark.parametrize(
    ("type_", "default", "wanted"),
    [
        ("int", None, "CAST(NULL AS int)"),
        ("boolean", False, "CAST('false' AS boolean)"),
        ("fixed[2]", "00ff", "CAST(X'00ff' AS binary)"),
        (
            {"type": "struct", "fields": [{"id": 9, "name": "x", "type": "int", "initial-default": 4}]},
            {},
            "CAST(named_struct('x', CAST('4' AS int)) AS struct<x:int>)",
        ),
        ({"type": "list", "element": "int"}, [1], "CAST(array(CAST('1' AS int)) AS array<int>)"),
        (
            {"type": "map", "key": "string", "value": "int"},
            {"keys": ["a"], "values": [None]},
            "CAST(map_from_arrays(array(CAST('a' AS string)), array(CAST(NULL AS int))) AS map<string,int>)",
        ),
    ],
)
def test_what_is_absent_has_its_initial_default(type_, default, wanted):
    assert absent({"type": type_, "initial-default": default}) == wanted
