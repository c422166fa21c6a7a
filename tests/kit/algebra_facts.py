"""What Headrace's algebra says a query says; see `kit.query_facts`."""

from __future__ import annotations

from headrace.algebra.relations import (
    Aggregate,
    Existence,
    Filter,
    Generate,
    Join,
    OuterJoin,
    Project,
    Recursive,
    Relation,
    Round,
    Scan,
    SortKey,
    TopK,
    Union,
    Window,
    WindowCall,
)
from headrace.algebra.scalar import Scalar, conjuncts
from headrace.sql.reader.refusals import SESSION
from kit.query_facts import NOTHING, Facts, Lineage, keys, union

Env = dict[str, Lineage]
"""What each column of a relation is made of."""

SYNONYMS = {
    "stddev_samp": "stddev",
    "std": "stddev",
    "var_samp": "variance",
    "string_agg": "listagg",
    "try_avg": "avg",
    "try_sum": "sum",
}
"""Functions that are one class of Spark's."""


def facts_of(tree: Relation) -> Facts:
    """The facts of a tree that the reader gave."""
    facts = Facts()
    env = _Walk(facts).visit(tree)
    facts.columns = tuple(env[name] for name in tree.columns)
    return facts


class _Walk:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.rounds: dict[str, Env] = {}

    def visit(self, node: Relation) -> Env:
        match node:
            case Scan():
                number = self.facts.scan(node.source.table)
                return {out: frozenset({f"{node.source.table}#{number}.{own.lower()}"}) for out, own in node.fields}
            case Round():
                return self.rounds[node.name]
            case Recursive():
                return self._recursive(node)
            case Union():
                return self._union(node)
            case Existence():
                return self._existence(node)
            case OuterJoin():
                return self._outer_join(node)
            case Join():
                env = self.visit(node.left) | self.visit(node.right)
                self._conditions(node.condition, env)
                return env
        if not node.inputs:
            return dict.fromkeys(node.columns, NOTHING)
        return self._over(node, self.visit(node.inputs[0]))

    def _over(self, node: Relation, env: Env) -> Env:
        match node:
            case Project():
                return {name: _made_of(scalar, env) for name, scalar in node.items}
            case Filter():
                self._conditions(node.condition, env)
            case Aggregate():
                return self._aggregate(node, env)
            case Window():
                partition = keys(env[name] for name in node.partition)
                return env | {call.name: self._window(call, partition, env) for call in node.calls}
            case Generate():
                made = _made_of(node.generator, env)
                self.facts.add("generators", (node.generator.sql.partition("(")[0].lower(), made))
                return env | dict.fromkeys(node.names, made)
            case TopK():
                order = tuple(_key(key, env) for key in node.order)
                for word, number in (("GlobalLimit", node.limit), ("Offset", node.offset or None)):
                    if number is not None:
                        self.facts.add("limits", (word, str(number), order))
        return {name: env[name] for name in node.columns}

    def _conditions(self, condition: Scalar | None, env: Env) -> None:
        for part in () if condition is None else conjuncts(condition):
            self.facts.condition(_made_of(part, env))

    def _outer_join(self, node: OuterJoin) -> Env:
        left, start = self.visit(node.left), len(self.facts.scans)
        right = self.visit(node.right)
        self._conditions(node.condition, left | right)
        conditions = frozenset(_made_of(part, left | right) for part in conjuncts(node.condition)) - {NOTHING}
        padded = frozenset(self.facts.scans[start:])
        self.facts.add("outer joins", ("FULL" if node.full else "LEFT", padded, conditions))
        return left | right

    def _existence(self, node: Existence) -> Env:
        left, start = self.visit(node.left), len(self.facts.scans)
        right = self.visit(node.right)
        self._conditions(node.condition, left | right)
        self.facts.add("existence", ("ANTI" if node.anti else "SEMI", frozenset(self.facts.scans[start:])))
        return left

    def _union(self, node: Union) -> Env:
        envs = [self.visit(branch) for branch in node.branches]
        self.facts.add("unions", "branches", len(envs) - 1)
        rows = [[env[name] for name in branch.columns] for env, branch in zip(envs, node.branches, strict=True)]
        return {name: union(parts) for name, parts in zip(node.columns, zip(*rows, strict=True), strict=True)}

    def _recursive(self, node: Recursive) -> Env:
        start = self.visit(node.start)
        self.rounds[node.name] = {name: start[name] for name in node.start.columns}
        again = self.visit(node.again)
        self.facts.add("recursions", node.levels)
        pairs = zip(node.start.columns, node.again.columns, strict=True)
        return {name: start[name] | again[own] for name, own in pairs}

    def _aggregate(self, node: Aggregate, env: Env) -> Env:
        grouped = {name: env[name] for name in node.keys}
        called, calls = {}, set()
        for call in node.calls:
            read = [each for each in (call.argument, *call.more, *(key.scalar for key in call.within)) if each]
            arguments = union(_made_of(each, env) for each in read)
            condition = NOTHING if call.filter is None else _made_of(call.filter, env)
            calls.add((SYNONYMS.get(call.function, call.function), call.distinct, arguments, condition))
            called[call.name] = arguments | condition
        self.facts.add("aggregates", (keys(grouped.values()), frozenset(calls)))
        return grouped | called

    def _window(self, call: WindowCall, partition: frozenset[Lineage], env: Env) -> Lineage:
        if call.written == SESSION:  # to Spark it is a value of the row, until rows are grouped by it
            return _made_of(call.call, env)
        order = tuple(_key(key, env) for key in call.order)
        made = union((_made_of(call.call, env), *partition, *(lineage for lineage, *_ in order)))
        self.facts.add("windows", (call.function, made, partition, order, call.frame.upper().startswith("ROWS")))
        return made


def _made_of(scalar: Scalar, env: Env) -> Lineage:
    return union(env[name] for name in scalar.columns)


def _key(key: SortKey, env: Env) -> tuple[Lineage, bool, bool]:
    words = key.direction.upper()
    descending = "DESC" in words
    return _made_of(key.scalar, env), descending, "LAST" in words if "NULLS" in words else descending
