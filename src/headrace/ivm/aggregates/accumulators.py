"""Accumulators: values kept per group so that aggregates follow a change.

Each accumulator can be computed from scratch, from a change, and from its old value and the change; an aggregate call
is a function of accumulators. Everything here is exact: sums of floating-point numbers drift, so they have no
accumulator, and a call without one makes its groups be recomputed.
Source: Gray et al., Data Cube, 1997 (distributive and algebraic aggregates).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from headrace.algebra.relations import Aggregate, AggregateCall
from headrace.algebra.scalar import Scalar, all_of, cast, column, compose
from headrace.algebra.types import INTEGERS, decimal, decimal_of, is_integer
from headrace.ivm.aggregates.decimal_average import quotient
from headrace.names import WEIGHT

ROWS = "__hr_n"
"""The accumulator every group has: how many rows it has."""


class Kind(StrEnum):
    """Ways in which an accumulator follows a change."""

    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class Accumulator:
    """One column of the companion.

    Args:
        name: The column.
        kind: How it follows a change.
        scratch: The call that computes it from the group's rows.
        type: Its type; None where Spark's own is right.
        weight_type: Type the weight is cast to when it multiplies the argument of a sum; None for a sum whose type has
            no digits to spare, and for what is no sum.
        count: For a sum, the accumulator that counts what was summed.
    """

    name: str
    kind: Kind
    scratch: AggregateCall
    type: str | None = None
    weight_type: str | None = None
    count: str | None = None

    @property
    def extreme(self) -> bool:
        """Return whether it is a minimum or maximum."""
        return self.kind in (Kind.MIN, Kind.MAX)

    @property
    def tight(self) -> bool:
        """Return whether it is a sum whose type has no spare digits and may overflow."""
        return self.kind is Kind.SUM and self.weight_type is None

    def halved(self, *, ansi: bool) -> bool:
        """Return whether its change is summed in two halves.

        Args:
            ansi: Whether arithmetic fails on overflow; where it wraps around, it does no harm.
        """
        whole = self.kind is Kind.SUM and self.type == "bigint"
        return ansi and whole and (self.scratch.argument_type or "").strip().lower() in ("bigint", "long")


@dataclass(slots=True)
class Plan:
    """The accumulators of an aggregate.

    Args:
        accumulators: The companion's columns after the keys; ROWS first.
        outputs: Each call as an expression over them.
    """

    accumulators: list[Accumulator] = field(default_factory=list)
    outputs: dict[str, Scalar] = field(default_factory=dict)
    _known: dict[tuple[Kind, AggregateCall, str | None], str] = field(default_factory=dict)

    @property
    def recomputed(self) -> bool:
        """Return whether touched groups must be read again, whatever the change."""
        return any(a.kind is Kind.VALUE for a in self.accumulators)

    def add(self, kind: Kind, call: AggregateCall, **facts: str | None) -> str:
        """Add an accumulator, or find an equal one.

        Args:
            kind: What it accumulates.
            call: The aggregate that is computed from it.
            facts: Further fields of `Accumulator`.

        Returns:
            The name of its column.
        """
        asked = (kind, replace(call, name="", argument_type=None, type=None), facts.get("weight_type"))
        if asked in self._known:
            return self._known[asked]
        self._known[asked] = name = ROWS if not self.accumulators else f"__hr_{len(self.accumulators)}_{kind.value}"
        scratch = replace(call, name=name, type=facts.get("type"))
        self.accumulators.append(Accumulator(name, kind, scratch, **facts))
        return name


def plan(aggregate: Aggregate) -> Plan:
    """Choose the accumulators of an aggregate.

    Args:
        aggregate: Its calls must have their types.
    """
    result = Plan()
    result.add(Kind.COUNT, AggregateCall(ROWS, "count"), type="bigint")
    for call in aggregate.calls:
        result.outputs[call.name] = _output(call, result)
    return result


def _output(call: AggregateCall, plan: Plan) -> Scalar:
    if not call.plain:
        return column(plan.add(Kind.VALUE, call, type=call.type))
    if call.function == "count":
        return column(plan.add(Kind.COUNT, call, type="bigint"))
    if call.function in ("min", "max") and call.argument is not None:
        return column(plan.add(Kind(call.function), call, type=call.type))
    if call.function == "sum":
        exact = _exact_sum(call, plan, wide=False)
        if exact is not None:
            return column(exact.name)
    if call.function == "avg":
        average = _average(call, plan)
        if average is not None:
            return average
    return column(plan.add(Kind.VALUE, call, type=call.type))


_SUMMABLE = 27
"""Largest precision for which a value times a weight, and the old sum plus the new, are exact within 38 digits."""

_KEPT_SCALE = 6
"""Up to this scale Spark's arithmetic rather overflows than rounds where 38 digits do not hold a result."""


def _exact_sum(call: AggregateCall, plan: Plan, *, wide: bool) -> Accumulator | None:
    """Return a sum over an exact type.

    Args:
        call: The call; its argument is summed.
        plan: Gets the sum and the count of what is summed.
        wide: Sum integers as decimals, for calls that do not overflow where sum(bigint) does.
    """
    argument, shape = call.argument, decimal_of(call.argument_type)
    if argument is None:
        return None
    weight_type: str | None = "bigint"
    if is_integer(call.argument_type) and not wide:
        sum_type = "bigint"
    else:
        if is_integer(call.argument_type):
            shape = INTEGERS[(call.argument_type or "").strip().lower()], 0
            argument = cast(argument, decimal(*shape))
        if shape is None or (shape[0] > _SUMMABLE and shape[1] > _KEPT_SCALE):
            return None
        precision, scale = shape
        sum_type = decimal(precision + 10, scale)
        weight_type = decimal(37 - precision, 0) if precision <= _SUMMABLE else None
    count = plan.add(Kind.COUNT, AggregateCall("", "count", call.argument, call.filter), type="bigint")
    scratch = AggregateCall("", "sum", argument, call.filter, call.argument_type)
    name = plan.add(Kind.SUM, scratch, type=sum_type, weight_type=weight_type, count=count)
    return next(a for a in reversed(plan.accumulators) if a.name == name)


def _average(call: AggregateCall, plan: Plan) -> Scalar | None:
    wide = (call.argument_type or "").strip().lower() in ("bigint", "long")
    shape = decimal_of(call.argument_type)
    if shape is not None and quotient(shape, "a", "b") is None:
        return None
    total = _exact_sum(call, plan, wide=wide)
    if total is None or total.count is None:
        return None
    if shape is None:
        template = "CASE WHEN {n} > 0 THEN CAST({s} AS double) / CAST({n} AS double) END"
        return compose(template, s=column(total.name), n=column(total.count))
    return quotient(shape, total.name, total.count)


def change_call(accumulator: Accumulator, prefix: str, *, ansi: bool = True) -> tuple[AggregateCall, ...]:
    """Return the calls over a weighted change from which an accumulator's new value follows.

    Names start with a prefix.

    Args:
        accumulator: The accumulator.
        prefix: What the names start with.
        ansi: Whether arithmetic fails on overflow.
    """
    call = accumulator.scratch
    name, weight = prefix + accumulator.name, column(WEIGHT)
    if accumulator.kind is Kind.COUNT:
        present = compose("{x} IS NOT NULL", x=call.argument) if call.argument is not None else None
        return (AggregateCall(name, "sum", weight, _both(call.filter, present), "bigint", "bigint"),)
    assert call.argument is not None
    if accumulator.halved(ansi=ansi):
        halves = ((HIGH, f"{{x}} div {_HALF}"), (LOW, f"{{x}} % {_HALF}"))
        return tuple(
            AggregateCall(part + name, "sum", compose(f"({text}) * {{w}}", x=call.argument, w=weight), call.filter)
            for part, text in halves
        )
    if accumulator.kind is Kind.SUM:
        return (AggregateCall(name, "sum", _weighed(accumulator, call.argument, weight), call.filter),)
    gained, lost = compose("{w} > 0", w=weight), compose("{w} < 0", w=weight)
    return (
        AggregateCall(name, call.function, call.argument, _both(call.filter, gained)),
        AggregateCall(LOST + name, call.function, call.argument, _both(call.filter, lost)),
    )


def _weighed(accumulator: Accumulator, argument: Scalar, weight: Scalar) -> Scalar:
    if not accumulator.tight:
        return compose(f"{{x}} * CAST({{w}} AS {accumulator.weight_type})", x=argument, w=weight)
    # NULL would be left out of the sum
    failure = "raise_error('[SUM_OVERFLOW] equal rows add up to more than the type of their sum holds')"
    several = f"COALESCE(try_multiply({{x}}, CAST({{w}} AS decimal(20,0))), CAST({failure} AS {accumulator.type}))"
    template = f"CASE WHEN {{w}} = 1 THEN {{x}} WHEN {{w}} = -1 THEN -{{x}} WHEN {{x}} IS NOT NULL THEN {several} END"
    return compose(template, x=argument, w=weight)


HIGH, LOW = "__hr_high.", "__hr_low."
"""Prefixes of the columns that hold the halves of a sum of 64-bit integers."""

_HALF = 4294967296
"""Two to the power of 32: halves of integers can be added up two thousand million times."""


def joined_halves(name: str) -> Scalar:
    """Return the sum of its halves, in a wider type than the summed values have.

    What a change adds to a sum may be too large for the sum's type although no sum ever was: two rows that leave, and
    whose like come only later in the order of addition. Decimals hold it, but adding them up takes several times as
    long as adding up integers.
    """
    template = f"CAST({{high}} AS decimal(20,0)) * CAST({_HALF} AS decimal(10,0)) + CAST({{low}} AS decimal(20,0))"
    return compose(template, high=column(HIGH + name), low=column(LOW + name))


LOST = "__hr_lost."
"""Prefix of the column that holds the most extreme value that left."""


def _both(first: Scalar | None, second: Scalar | None) -> Scalar | None:
    return all_of(c for c in (first, second) if c is not None)
