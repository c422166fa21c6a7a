"""Where the reader's algebra says something else than Spark's analysis, rightly: by class, with the reason.

Most classes are what the reader makes of subqueries. A class takes away what it accounts for of what only one side
says; what is left when all have had their turn is a defect of the reader, or a difference that nobody wrote down.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kit.dispute import Dispute
from kit.judged import SparkRefusal
from kit.query_facts import NOTHING, union

COUNT = ("count", False, NOTHING, NOTHING)


@dataclass(frozen=True)
class Difference:
    """A class of differences.

    Args:
        name: What it is about.
        reason: Why both sides are right.
        settles: Takes away what it accounts for, and says whether there was anything.
    """

    name: str
    reason: str
    settles: Callable[[Dispute], bool]


def _drop(side: dict[str, Any], aspect: str, wanted: Callable[[Any], bool]) -> bool:
    """Take away facts of one side."""
    found = [fact for fact in side.get(aspect, ()) if wanted(fact)]
    for fact in found:
        del side[aspect][fact]
    return bool(found)


def _match(dispute: Dispute, aspect: str, alike: Callable[[Any, Any], bool]) -> bool:
    """Take away facts of both sides that are the same but for what a class is about."""
    matched = False
    for theirs in list(dispute.spark.get(aspect, ())):
        own = next((each for each in dispute.ours.get(aspect, ()) if alike(theirs, each)), None)
        if own is None:
            continue
        for side, fact in ((dispute.spark, theirs), (dispute.ours, own)):
            side[aspect][fact] -= 1
            side[aspect] += type(side[aspect])()
        matched = True
    return matched


def _writes(dispute: Dispute, word: str) -> bool:
    return re.search(rf"(?i)\b{word}\b", dispute.text) is not None


def _read_again(dispute: Dispute) -> bool:
    both = (dispute.spark["scans"], dispute.ours["scans"])
    known = set(dispute.scanned)
    if not dispute.asks() or not any(both) or any(not set(each) <= known for each in both):
        return False
    for each in both:
        each.clear()
    dispute.once()
    return True


def _for_each_key(dispute: Dispute) -> bool:
    def alike(theirs: Any, own: Any) -> bool:
        """Return whether the reader groups the same calls by more."""
        return theirs[1] == own[1] and theirs[0] < own[0]

    if not dispute.asks(outer=True):
        return False
    found = _match(dispute, "aggregates", alike)
    known = dispute.known("aggregates")
    return _drop(dispute.ours, "aggregates", lambda own: any(alike(each, own) for each in known)) or found


def _only_value(dispute: Dispute) -> bool:
    def only(fact: Any) -> bool:
        calls = {function for function, *_ in fact[1]}
        return len(fact[1]) == 2 and COUNT in fact[1] and calls == {"count", "max"}

    return dispute.asks("ScalarSubquery") and _drop(dispute.ours, "aggregates", only)


def _distinct_keys(dispute: Dispute) -> bool:
    return dispute.asks() and _drop(dispute.ours, "aggregates", lambda fact: fact[0] and not fact[1])


def _flags(dispute: Dispute) -> bool:
    def counts(fact: Any) -> bool:
        return not fact[0] and COUNT in fact[1] and {function for function, *_ in fact[1]} == {"count"}

    return dispute.asks("Exists", "ListQuery", outer=False) and _drop(dispute.ours, "aggregates", counts)


def _marks(dispute: Dispute) -> bool:
    """Rows with a partner beside rows without one, each with a truth value."""
    if not dispute.asks("Exists", "ListQuery") or not dispute.ours.get("unions"):
        return False
    said = dispute.own("existence")
    dispute.ours["unions"].clear()
    return _drop(dispute.ours, "existence", lambda fact: {(kind, fact[1]) for kind in ("SEMI", "ANTI")} <= {*said})


def _value_beside(dispute: Dispute) -> bool:
    """Values and marks are joined to rows that stay without them."""
    known = dispute.scanned_by_subqueries
    return dispute.asks() and _drop(
        dispute.ours, "outer joins", lambda fact: fact[0] == "LEFT" and bool(fact[1] & known)
    )


def _on(dispute: Dispute) -> bool:
    """The right side of an outer join with the columns of subqueries, or with the conditions of its own."""
    return dispute.asks() and _match(
        dispute,
        "outer joins",
        lambda theirs, own: theirs[0] == own[0] and theirs[1] <= own[1] and theirs != own,
    )


def _on_exists(dispute: Dispute) -> bool:
    return (
        dispute.asks("Exists", "ListQuery")
        and _writes(dispute, "LEFT|RIGHT|FULL")
        and _drop(dispute.spark, "existence", lambda fact: True)
    )


def _case_for_on(dispute: Dispute) -> bool:
    return dispute.asks("LateralSubquery", outer=True) and _drop(dispute.spark, "conditions", lambda fact: True)


def _itself(dispute: Dispute) -> bool:
    known = dispute.known("conditions")
    return dispute.asks(outer=True) and _drop(
        dispute.ours, "conditions", lambda fact: len(fact) == 1 and any(fact < each for each in known)
    )


def _numbered(dispute: Dispute) -> bool:
    """LIMIT n for each outer row: the rows whose number is at most n."""
    found = False
    for window in [each for each in dispute.ours.get("windows", ()) if each[0] == "row_number"]:
        _, made, _, order, _ = window
        if _drop(dispute.spark, "limits", lambda fact, order=order: fact[2] == order):
            found = True
            del dispute.ours["windows"][window]
            _drop(dispute.ours, "conditions", lambda fact, made=made: fact == made)
    return found


def _without_effect(dispute: Dispute) -> bool:
    """LIMIT without an order, and LIMIT 0."""
    found = _drop(dispute.spark, "limits", lambda fact: not fact[2] or fact[1] == "0")
    if found:
        _drop(dispute.ours, "conditions", lambda fact: not fact)
    return found


def _without_from(dispute: Dispute) -> bool:
    """LEFT JOIN LATERAL with a subquery that reads no table."""
    return _writes(dispute, "LATERAL") and _drop(
        dispute.spark, "outer joins", lambda fact: fact[0] == "LEFT" and not fact[1]
    )


def _whether_rows(dispute: Dispute) -> bool:
    if not dispute.asks("Exists"):
        return False
    limits = _drop(dispute.spark, "limits", lambda fact: fact[0] == "GlobalLimit")
    return _drop(dispute.spark, "aggregates", lambda fact: bool(fact[0])) or limits


def _group_left(dispute: Dispute) -> bool:
    """Subqueries with HAVING of which EXISTS asks whether a group is left, not what is selected of it."""
    if not dispute.asks("Exists", "ListQuery", outer=True) or not _writes(dispute, "HAVING"):
        return False
    found = _match(dispute, "aggregates", lambda theirs, own: theirs[0] <= own[0] and own[1] < theirs[1])
    # a group of all rows is there without any, so that one that HAVING does not ask about is no condition
    always = [fact for fact in dispute.spark.get("aggregates", ()) if not fact[0]]
    made = union(lineage for _, calls in always for _, _, *lineages in calls for lineage in lineages)
    if always and _drop(dispute.spark, "aggregates", always.__contains__):
        _drop(dispute.spark, "existence", lambda fact: fact[0] == "SEMI")
        _drop(dispute.spark, "conditions", lambda fact: fact <= made)
        found = True
    return found


def _spans(dispute: Dispute) -> bool:
    """Windows of time that overlap."""
    made = [fact for fact in dispute.ours.get("generators", ()) if fact[0] == "window"]
    times = union(lineage for _, *lineages in made for lineage in lineages)
    return (
        bool(made)
        and _drop(dispute.spark, "conditions", lambda fact: fact <= times)
        and _drop(dispute.ours, "generators", made.__contains__)
    )


def _sessions(dispute: Dispute) -> bool:
    """Rows that are in no session."""
    return _writes(dispute, "session_window") and _drop(dispute.spark, "conditions", lambda fact: True)


def _one_group(dispute: Dispute) -> bool:
    def alike(theirs: Any, own: Any) -> bool:
        return not (theirs[0] or theirs[1] or own[0]) and set(own[1]) == {COUNT}

    return _match(dispute, "aggregates", alike)


def _unread(dispute: Dispute) -> bool:
    """Calls that no column reads."""
    windows = not dispute.asks() and _drop(dispute.spark, "windows", lambda fact: True)
    calls = _match(dispute, "aggregates", lambda theirs, own: theirs[0] == own[0] and own[1] < theirs[1])
    return calls or windows


def _pivot(dispute: Dispute) -> bool:
    if not _writes(dispute, "PIVOT"):
        return False

    def made(fact: Any) -> frozenset[str]:
        return union(lineage for _, _, *lineages in fact[1] for lineage in lineages)

    found = _match(dispute, "aggregates", lambda theirs, own: theirs[0] == own[0] and made(theirs) == made(own))
    if found:
        # the groups of groups and pivoted values, which Spark makes first
        _drop(dispute.spark, "aggregates", lambda fact: True)
    return found


def _unpivot(dispute: Dispute) -> bool:
    if not _writes(dispute, "UNPIVOT"):
        return False
    _match(dispute, "lineage", lambda theirs, own: theirs[0] == own[0] and theirs[1] <= own[1])
    return _drop(dispute.ours, "generators", lambda fact: fact[0] == "posexplode")


def _in_no_set(dispute: Dispute) -> bool:
    if not _writes(dispute, "GROUPING SETS"):
        return False
    _match(dispute, "lineage", lambda theirs, own: theirs[0] == own[0] and theirs[1] < own[1])
    return _match(dispute, "aggregates", lambda theirs, own: theirs[1] == own[1] and theirs[0] < own[0])


def _nullable(*words: str) -> Callable[[Dispute], bool]:
    """Columns that Spark knows to be never NULL, and not so in the algebra, in queries that write a word."""

    def settles(dispute: Dispute) -> bool:
        written = any(_writes(dispute, word) for word in words)
        return written and _match(dispute, "nullability", lambda theirs, own: theirs[0] == own[0] and own[1])

    return settles


def _counts_are_never_null(dispute: Dispute) -> bool:
    return (
        dispute.asks("ScalarSubquery", outer=True)
        and _writes(dispute, "count")
        and _match(dispute, "nullability", lambda theirs, own: theirs[0] == own[0] and not own[1])
    )


DIFFERENCES = (
    Difference(
        "read as often as needed",
        "NOT IN asks a second time for NULLs, outer values are read once more by the rows they are for, a condition in "
        "an expression has its rows with and without a partner; a subquery that is written twice is read once.",
        _read_again,
    ),
    Difference(
        "PIVOT", "An aggregate with FILTER for each value; Spark groups twice, or puts IF into the argument.", _pivot
    ),
    Difference("UNPIVOT", "posexplode of an array of the columns; Spark copies the rows (Expand).", _unpivot),
    Difference(
        "for each key", "An aggregate with outer columns is grouped by the keys of the rows it is for.", _for_each_key
    ),
    Difference(
        "only value", "A subquery of one value is max(x) where count(*) <= 1; Spark looks when it runs.", _only_value
    ),
    Difference("distinct keys", "The keys of partners, and the outer values that rows are looked for.", _distinct_keys),
    Difference("flags", "Whether a subquery has rows, or NULLs, is counted once for all rows.", _flags),
    Difference("first of each", "LIMIT for each outer row is row_number() at most n, in the same order.", _numbered),
    Difference("without effect", "LIMIT leaves one row at most as it is; LIMIT 0 leaves none.", _without_effect),
    Difference("LATERAL without FROM", "Its one row is columns of the row before it, and no join.", _without_from),
    Difference(
        "whether a group is left",
        "EXISTS is decided by HAVING alone; a group of all rows is always there.",
        _group_left,
    ),
    Difference(
        "whether there are rows", "EXISTS is not decided by GROUP BY and LIMIT, which are left out.", _whether_rows
    ),
    Difference("spans", "window() is a generator; Spark copies the rows (Expand) and filters them by time.", _spans),
    Difference("sessions", "One comparison leaves out rows without a time and rows without a gap.", _sessions),
    Difference(
        "marks", "A condition inside an expression is a column of a union of rows with and without a partner.", _marks
    ),
    Difference("EXISTS in ON", "Beside outer joins it becomes a column of one side.", _on_exists),
    Difference("ON", "A side of an outer join carries what subqueries or LATERAL add to it.", _on),
    Difference(
        "value beside rows",
        "Rows without a value of a subquery stay: its column is joined by LEFT JOIN.",
        _value_beside,
    ),
    Difference(
        "CASE for ON",
        "HAVING and ON of a LATERAL aggregate beside rows that stay are CASE in its columns.",
        _case_for_on,
    ),
    Difference("values find themselves", "Rows find the outer values they were computed for by these values.", _itself),
    Difference(
        "in no set", "A column that GROUPING SETS leave out everywhere is CASE in the copies of rows.", _in_no_set
    ),
    Difference("one group", "One group of all rows without aggregates has their count.", _one_group),
    Difference("unread", "What no column reads is left out.", _unread),
    Difference(
        "counts",
        "A count with outer columns is 0 over nothing; Spark takes any scalar subquery for nullable.",
        _counts_are_never_null,
    ),
    Difference(
        "conservative: names of UNPIVOT",
        "The name of a row's column comes from CASE without ELSE.",
        _nullable("UNPIVOT"),
    ),
    Difference("conservative: grouping()", "The bit is computed from the number of the set.", _nullable("grouping")),
    Difference(
        "conservative: set operations",
        "A column of INTERSECT is NULL where it is in both sides, of EXCEPT where it is in the left one; of the union "
        "that the reader makes of them, where it is in either.",
        _nullable("INTERSECT", "EXCEPT"),
    ),
)
"""All classes, in the order in which they have their turn."""


def settled(dispute: Dispute) -> frozenset[str]:
    """Let the classes account for what they can; the names of those that did."""
    return frozenset(each.name for each in DIFFERENCES if each.settles(dispute))


@dataclass(frozen=True)
class LeftToSpark:
    """A class of queries that only Spark refuses, which is asked before the reader.

    Args:
        name: What it is about.
        reason: Why the reader need not know.
        holds: Whether a query that Spark refuses is one.
    """

    name: str
    reason: str
    holds: Callable[[SparkRefusal, str, list[str]], bool]


Holds = Callable[[SparkRefusal, str, list[str]], bool]


def _any_of(*each: Holds) -> Holds:
    return lambda refusal, query, columns: any(holds(refusal, query, columns) for holds in each)


def _condition(*prefixes: str) -> Callable[[SparkRefusal, str, list[str]], bool]:
    return lambda refusal, query, columns: refusal.condition.startswith(prefixes)


def _is_field(refusal: SparkRefusal, query: str, columns: list[str]) -> bool:
    parts = refusal.name.strip("`").split("`.`")
    return refusal.condition.startswith("UNRESOLVED_COLUMN") and len(parts) > 1 and parts[0] in columns


def _unread_clause(refusal: SparkRefusal, query: str, columns: list[str]) -> bool:
    last = re.escape(refusal.name.rpartition(".")[2].strip("`"))
    ordered = rf"\b(ORDER|SORT|CLUSTER) BY\b[^()]*\b{last}\b"
    grouped = rf"\bEXISTS \(.*\bGROUP BY\b[^()]*\b{last}\b"
    found = re.search(rf"(?is){ordered}|{grouped}", query)
    return refusal.condition.startswith("UNRESOLVED_COLUMN") and found is not None


def _no_time(refusal: SparkRefusal, query: str, columns: list[str]) -> bool:
    """Return whether there is no column `window`, since what was to be divided is no time."""
    return refusal.condition.startswith("UNRESOLVED_COLUMN") and refusal.name.startswith("`window`.")


TYPES = LeftToSpark(
    "types",
    "Scalars stay the user's text: types, fields of structs and what functions want are Spark's to know.",
    _any_of(
        _no_time,
        _condition(
            "AMBIGUOUS_REFERENCE_TO_FIELDS",
            "CAST_INVALID_INPUT",
            "DATATYPE_MISMATCH",
            "FIELD_NOT_FOUND",
            "INCOMPATIBLE_COLUMN_TYPE",
            "INVALID_EXTRACT",
            "INVALID_WITHIN_GROUP_EXPRESSION",
            "PIVOT_VALUE_DATA_TYPE_MISMATCH",
            "Py4JJavaError",
            "UNSUPPORTED_DATATYPE",
            "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY",
            "_LEGACY_ERROR_TEMP_1036",
        ),
    ),
)

LEFT_TO_SPARK = (
    TYPES,
    LeftToSpark("grammar", "The reader cuts a text into clauses; Spark parses it.", _condition("PARSE_SYNTAX_ERROR")),
    LeftToSpark("fields", "In a subquery Spark says of a field of what is no struct that it is unresolved.", _is_field),
    LeftToSpark(
        "unread clauses",
        "ORDER BY that cuts nothing off does not change a table, GROUP BY does not change EXISTS: they are not read.",
        _unread_clause,
    ),
)
"""All classes of queries that only Spark refuses."""


MISTAKES = (
    "select a from t union all select a, b from t",
    "select a from t intersect select a, b from t",
    "select a from t where a in (select a, b from t)",
    "select (select a, b from t) as x from t",
    "with x(p) as (select a, b from t) select p from x",
    "select p from (select a, b from t) x(p)",
    "with recursive r(n) as (select a from t union all select n, 1 from r) select n from r",
    "select * from values (1, 2), (3)",
    "select region from o join c on o.id = c.id",
    "select t.a from t join t on t.a = t.b",
    "select a from t x join t y using (a) where b > 1",
    "select k from (select a as k, b as k from t)",
    "select o.id, c.name from o left join c on o.id = c.id and id in (select a from t)",
    "select t.a from t x",
    "select c.id from o left semi join c on o.id = c.id",
    "select name from t join c using (id)",
    "select a from t where exists (select 1 from c where c.id = z.a)",
    "select l.nope from t, lateral (select id from c where c.id = t.a) l",
    "select v.nope from o lateral view explode(arr) v as e",
    "select s + 1 as z, a as s from t",
    "select address.city as z, count(*) n from o group by city",
    "select a, count(*) as n from t",
    "select a from t group by b",
    "select max(b) as m from t group by a having m > 1 and b > 1",
    "select a from t group by 2",
    "select a, max(b) as m from t group by 1, 2",
    "select sum(b) as s from t group by sum(b)",
    "select sum(sum(b)) as s from t",
    "select max(rank() over (order by a)) as m from t",
    "select a from t where sum(b) > 1",
    "select a from t where rank() over (order by a) = 1",
    "select a from t where exists (select 1 from c where max(c.id) = t.a)",
    "select x.a from t x join t y on sum(x.a) = y.a",
    "select sum(a) over v as s from t window w as (partition by a)",
    "select * except (nope) from t",
    "select * except (a, a) from t",
    "select nope.* from t",
)
"""Queries that both refuse: wrong numbers of columns, names that could mean two, what is read where it is not there."""

STRICTER = {
    "Spark takes a column that a derived table shows twice for one.": "select a from (select a, b, a from t) x",
    "Names that Spark makes up for expressions are its own.": "select upper(region), count(*) as n from o group by "
    "`upper(region)`",
}
"""Queries that only the reader refuses, as it does not understand a name; by reason."""
