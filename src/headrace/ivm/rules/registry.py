"""The rules, one for each operator of a query. This list is the whole of them."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.algebra import relations as r
from headrace.ivm.change import Rule
from headrace.ivm.rules import (
    aggregate,
    existence,
    filter,
    generate,
    join,
    outer_join,
    project,
    recursive,
    replicate,
    scan,
    top_k,
    union,
    values,
    window,
)

RULES: Mapping[type[r.Relation], Rule] = {
    r.Scan: scan.delta,
    r.Values: values.delta,
    r.Project: project.delta,
    r.Filter: filter.delta,
    r.Join: join.delta,
    r.OuterJoin: outer_join.delta,
    r.Existence: existence.delta,
    r.Union: union.delta,
    r.Aggregate: aggregate.delta,
    r.Replicate: replicate.delta,
    r.Window: window.delta,
    r.Generate: generate.delta,
    r.TopK: top_k.delta,
    r.Recursive: recursive.delta,
}

NO_RULE: Mapping[type[r.Relation], str] = {
    r.Stored: "what Headrace stores is read by rules, never by a query",
    r.Empty: "it has no source below it, so its change is never asked for",
    r.SemiJoin: "rules make it to restrict a relation to affected keys; what users write becomes an Existence",
    r.LookupJoin: "rules make it to put old accumulators beside new ones",
    r.Round: "it stands inside a recursion, whose rule looks at it as a whole",
    r.Repeat: "it is made only when a change is applied",
}
"""Reasons why operators need no rule."""
