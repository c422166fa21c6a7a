"""What Spark's analysis says a query says; see `kit.query_facts`."""

from __future__ import annotations

from collections.abc import Mapping

from kit.query_facts import NOTHING, Facts, Lineage, keys, union
from kit.spark_plan import Node

Env = Mapping[int, Lineage]
"""What each attribute is made of."""

Columns = list[tuple[int, Lineage]]
"""The output of an operator, in order."""

FUNCTIONS = {
    "anyvalue": "any_value",
    "average": "avg",
    "bitandagg": "bit_and",
    "bitoragg": "bit_or",
    "bitxoragg": "bit_xor",
    "booland": "min",
    "boolor": "max",
    "collectlist": "collect_list",
    "collectset": "collect_set",
    "countif": "count",
    "cumedist": "cume_dist",
    "denserank": "dense_rank",
    "hyperloglogplusplus": "approx_count_distinct",
    "firstvalue": "first_value",
    "jsontuple": "json_tuple",
    "maxby": "max_by",
    "minby": "min_by",
    "nthvalue": "nth_value",
    "percentilecont": "percentile_cont",
    "percentiledisc": "percentile_disc",
    "percentrank": "percent_rank",
    "rownumber": "row_number",
    "stddevsamp": "stddev",
    "variancesamp": "variance",
}
"""Functions that Spark's classes call otherwise."""

RANKING = frozenset(["rank", "dense_rank", "row_number", "percent_rank", "cume_dist", "ntile", "lag", "lead"])
"""Window functions whose frame is Spark's own."""


_NO_PARTITION = ("SortOrder", "SpecifiedWindowFrame", "UnspecifiedFrame$")


def facts_of(plan: Node) -> Facts:
    """The facts of an analysed plan."""
    facts = Facts()
    facts.columns = tuple(lineage for _, lineage in _Walk(facts).visit(plan, {}))
    return facts


class _Walk:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.ctes: dict[int, Node] = {}
        self.loops: dict[int, list[Lineage]] = {}
        self.order: tuple[tuple[Lineage, bool, bool], ...] = ()
        self.asked: tuple[bool, frozenset[str]] = (False, frozenset())
        self.reads_outer = False

    def visit(self, node: Node, outer: Env, name: str = "") -> Columns:
        """Take down the facts of an operator and of all below it.

        Args:
            node: The operator.
            outer: What the attributes of the queries around it are made of.
            name: What the operator above calls it.
        """
        match node.kind:
            case "SubqueryAlias":
                return self.visit(node.children[0], outer, node.fields["identifier"]["name"])
            case "View" if node.children[0].kind == "LocalRelation":
                return self._table(node.children[0], name)
            case "DataSourceV2Relation":
                return self._table(node, name)
            case "LocalRelation":  # rows that are written into the query
                return [(each.id, NOTHING) for each in node.expressions("output")]
            case "WithCTE":
                for definition in node.children[:-1]:
                    self.ctes[definition.fields["id"]] = definition.children[0]
                return self.visit(node.children[-1], outer)
            case "CTERelationRef":
                return self._again(node, self.ctes[node.fields["cteId"]], outer)
            case "UnionLoop":
                return self._loop(node, outer)
            case "UnionLoopRef":
                ids = [each.id for each in node.expressions("output")]
                return list(zip(ids, self.loops[node.fields["loopId"]], strict=True))
            case "Join":
                return self._join(node, outer)
            case "Union" | "Intersect" | "Except":
                return self._set_operation(node, outer)
        if not node.children:
            return []
        columns = self.visit(node.children[0], outer, name)
        return self._over(node, columns, {**outer, **dict(columns)})

    def _table(self, node: Node, name: str) -> Columns:
        number = self.facts.scan(name)
        output = node.expressions("output")
        return [(each.id, frozenset({f"{name}#{number}.{each.fields['name'].lower()}"})) for each in output]

    def _again(self, node: Node, definition: Node, outer: Env) -> Columns:
        lineages = [lineage for _, lineage in self.visit(definition, outer)]
        return list(zip([each.id for each in node.expressions("output")], lineages, strict=True))

    def _loop(self, node: Node, outer: Env) -> Columns:
        anchor, recursion = node.children
        start = self.visit(anchor, outer)
        self.loops[node.fields["id"]] = [lineage for _, lineage in start]
        again = self.visit(recursion, outer)
        self.facts.add("recursions", node.fields.get("maxDepth"))
        ids = [int(each["id"]) for each in node.fields["outputAttrIds"]] or [id_ for id_, _ in start]
        return [(id_, a | b) for id_, (_, a), (_, b) in zip(ids, start, again, strict=True)]

    def _set_operation(self, node: Node, outer: Env) -> Columns:
        branches = [self.visit(child, outer) for child in node.children]
        self.facts.add("unions", "branches", len(branches) - 1)
        rows = [union(lineages) for lineages in zip(*([m for _, m in each] for each in branches), strict=True)]
        if node.kind != "Union":
            # rows are counted that come from either side, as the reader does it
            self.facts.add("aggregates", (keys(rows), frozenset([("count", False, NOTHING, NOTHING)])))
        return [(id_, made) for (id_, _), made in zip(branches[0], rows, strict=True)]

    def _join(self, node: Node, outer: Env) -> Columns:
        kind = node.fields["joinType"]["object"].rpartition(".")[2].rstrip("$")
        sides = [1, 0] if kind == "RightOuter" else [0, 1]
        found: dict[int, Columns] = {}
        start = 0
        for side in sides:
            start = len(self.facts.scans)
            found[side] = self.visit(node.children[side], outer)
        padded = frozenset(self.facts.scans[start:])
        both = found[0] + found[1]
        env = {**outer, **dict(both)}
        parts = [part for each in node.expressions("condition") for part in _conjuncts(each)]
        conditions = frozenset(self._condition(part, env) for part in parts) - {NOTHING}
        if kind in ("LeftOuter", "RightOuter", "FullOuter"):
            self.facts.add("outer joins", ("FULL" if kind == "FullOuter" else "LEFT", padded, conditions))
        if kind in ("LeftSemi", "LeftAnti"):
            self.facts.add("existence", (kind.removeprefix("Left").upper(), padded))
            return found[0]
        return both

    def _over(self, node: Node, columns: Columns, env: Env) -> Columns:
        match node.kind:
            case "Project":
                return [self._named(each, env) for each in node.expressions("projectList")]
            case "Filter":
                for each in node.expressions("condition"):
                    for part in _conjuncts(each):
                        self._condition(part, env)
            case "Distinct":
                self.facts.add("aggregates", (keys(lineage for _, lineage in columns), frozenset()))
            case "Aggregate":
                return self._aggregate(node, env)
            case "Expand":
                return self._expand(node, columns, env)
            case "Window":
                return columns + [self._window(each, env) for each in node.expressions("windowExpressions")]
            case "Generate":
                return columns + self._generate(node, env)
            case "LateralJoin":
                return self._lateral(node, columns, env)
            case "Sort":
                self.order = tuple(self._key(each, env) for each in node.expressions("order"))
            case "GlobalLimit" | "Offset":
                (number,) = node.expressions("limitExpr" if node.kind == "GlobalLimit" else "offsetExpr")
                self.facts.add("limits", (node.kind, number.fields.get("value"), self.order))
        return columns

    def _expand(self, node: Node, columns: Columns, env: Env) -> Columns:
        ids = [each.id for each in node.expressions("output")]
        projections = node.fields["projections"]
        if projections is None:  # Spark writes some as null: the columns of its input, then the number of the set
            rows = [[lineage for _, lineage in columns] + [NOTHING] * (len(ids) - len(columns))]
        else:
            rows = [[self._made_of(each, env) for each in _listed(row)] for row in projections]
        return [(id_, union(parts)) for id_, parts in zip(ids, zip(*rows, strict=True), strict=True)]

    # expressions

    def _made_of(self, node: Node, env: Env) -> Lineage:
        """The columns of tables that an expression reads, and the facts of the subqueries in it."""
        match node.kind:
            case "AttributeReference":
                return env[node.id]
            case "OuterReference":
                self.reads_outer = True
                return self._made_of(node.expressions("e")[0], env)
            case "ScalarSubquery":
                return union(lineage for _, lineage in self._subquery(node, env))
            case "Exists":
                self._subquery(node, env)
                return NOTHING
            case "InSubquery":
                return self._in(node, env)
        return union(self._made_of(child, env) for child in node.children)

    def _named(self, node: Node, env: Env) -> tuple[int, Lineage]:
        return node.id, self._made_of(node, env)

    def _subquery(self, node: Node, env: Env) -> Columns:
        start, around = len(self.facts.scans), self.reads_outer
        self.reads_outer = False
        columns = self.visit(node.expressions("plan")[0], env)
        self.asked = self.reads_outer, frozenset(self.facts.scans[start:])
        self.reads_outer = around
        self.facts.add("subqueries", (node.kind, *self.asked))
        return columns

    def _in(self, node: Node, env: Env) -> Lineage:
        values = [self._made_of(each, env) for each in node.children[:-1]]
        columns = self._subquery(node.children[-1], env)
        if len(values) == 1 < len(columns):  # a struct stands for its fields
            values = [self._made_of(each, env) for each in node.children[0].children[1::2]]
        for value, (_, own) in zip(values, columns, strict=True):
            self.facts.condition(value | own)
        return NOTHING

    def _condition(self, part: Node, env: Env) -> Lineage:
        """Take down a condition; one that only asks for existence is an own kind of join."""
        asked, negated = part, False
        while asked.kind == "Not":
            asked, negated = asked.children[0], not negated
        made = self._made_of(part, env)
        if asked.kind in ("Exists", "InSubquery"):
            outer, scans = self.asked
            if outer or asked.kind == "InSubquery":
                self.facts.add("existence", ("ANTI" if negated else "SEMI", scans))
            return NOTHING
        self.facts.condition(made)
        return made

    def _aggregate(self, node: Node, env: Env) -> Columns:
        grouped = keys(self._made_of(each, env) for each in node.expressions("groupingExpressions"))
        items = node.expressions("aggregateExpressions")
        calls = [each for item in items for each in item.walk() if each.kind == "AggregateExpression"]
        self.facts.add("aggregates", (grouped, frozenset(self._call(each, env) for each in calls)))
        return [self._named(each, env) for each in items]

    def _call(self, node: Node, env: Env) -> tuple[str, bool, Lineage, Lineage]:
        own = node.children[0]
        conditions = union(self._made_of(each, env) for each in node.children[1:])
        arguments = self._made_of(own, env)
        function = own.kind.lower()
        name = FUNCTIONS.get(function, function)
        if function == "countif" or (function == "count" and len(own.children) > 1 and not node.fields["isDistinct"]):
            arguments, conditions = NOTHING, arguments | conditions
        distinct = bool(node.fields["isDistinct"]) and name not in ("min", "max")
        return name, distinct, arguments, conditions

    def _window(self, node: Node, env: Env) -> tuple[int, Lineage]:
        expression = next(each for each in node.walk() if each.kind == "WindowExpression")
        call, over = expression.children
        function = call.children[0] if call.kind == "AggregateExpression" else call
        partition = keys(self._made_of(each, env) for each in over.children if each.kind not in _NO_PARTITION)
        order = tuple(self._key(each, env) for each in over.children if each.kind == "SortOrder")
        frame = next((each for each in over.children if each.kind == "SpecifiedWindowFrame"), None)
        made = self._made_of(expression, env)
        name = function.kind.lower()
        name = FUNCTIONS.get(name, name)
        self.facts.add("windows", (name, made, partition, order, name not in RANKING and _by_rows(frame)))
        return node.id, made

    def _key(self, node: Node, env: Env) -> tuple[Lineage, bool, bool]:
        descending = "Descending" in node.fields["direction"]["object"]
        return self._made_of(node.children[0], env), descending, "NullsLast" in node.fields["nullOrdering"]["object"]

    def _generate(self, node: Node, env: Env) -> Columns:
        generator = node.expressions("generator")[0]
        made = self._made_of(generator, env)
        name = generator.kind.lower().removesuffix("outer")
        name = FUNCTIONS.get(name, name) + ("_outer" if node.fields["outer"] else "")
        self.facts.add("generators", (name, made))
        return [(each.id, made) for each in node.expressions("generatorOutput")]

    def _lateral(self, node: Node, columns: Columns, env: Env) -> Columns:
        (right,) = node.expressions("right")
        own = self._subquery(right, env)
        _, padded = self.asked
        env = {**env, **dict(own)}
        parts = [part for each in node.expressions("condition") for part in _conjuncts(each)]
        conditions = frozenset(self._condition(part, env) for part in parts) - {NOTHING}
        if "LeftOuter" in node.fields["joinType"]["object"]:
            self.facts.add("outer joins", ("LEFT", padded, conditions))
        return columns + own


def _listed(row: object) -> list[Node]:
    return [each for each in row if isinstance(each, Node)] if isinstance(row, list) else []


def _by_rows(frame: Node | None) -> bool:
    if frame is None or "RowFrame" not in str(frame.fields.get("frameType")):
        return False
    bounds = [each.kind for each in frame.children]
    return bounds != ["UnboundedPreceding$", "UnboundedFollowing$"]


def _conjuncts(node: Node) -> list[Node]:
    """The parts of a condition that must all hold, as far as NOT can be moved inwards."""
    if node.kind == "And":
        return [part for child in node.children for part in _conjuncts(child)]
    if node.kind == "Not" and node.children[0].kind == "Or":
        return [part for child in node.children[0].children for part in _conjuncts(_not(child))]
    if node.kind == "Not" and node.children[0].kind == "Not":
        return _conjuncts(node.children[0].children[0])
    return [node]


def _not(node: Node) -> Node:
    return Node("Not", {}, (node,))
