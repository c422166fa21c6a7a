"""Spark's analysed plans as trees in Python: one call into the JVM for each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Node:
    """An operator or an expression.

    Args:
        kind: The simple name of its class.
        fields: Its other fields: expressions are nodes, or lists of nodes.
        children: Its inputs.
    """

    kind: str
    fields: Mapping[str, Any]
    children: tuple[Node, ...]

    def expressions(self, name: str) -> list[Node]:
        """The expressions of a field, in order."""
        return [each for each in _flat(self.fields.get(name)) if isinstance(each, Node)]

    @property
    def id(self) -> int:
        """The number of an attribute or alias."""
        return int(self.fields["exprId"]["id"])

    def walk(self) -> Iterator[Node]:
        """It and all below it, the plans of subqueries left out."""
        yield self
        for child in self.children:
            yield from child.walk()


def analysed(frame: DataFrame) -> Node:
    """The analysed plan of a query."""
    plan: Any = frame
    return _node(iter(json.loads(plan._jdf.queryExecution().analyzed().toJSON())))


def _node(nodes: Iterator[dict[str, Any]]) -> Node:
    """A tree from its nodes, each before its inputs."""
    values = next(nodes)
    fields = {name: _value(value) for name, value in values.items() if name not in ("class", "num-children")}
    kind = values["class"].rpartition(".")[2]
    return Node(kind, fields, tuple(_node(nodes) for _ in range(values["num-children"])))


def _value(value: Any) -> Any:
    if not isinstance(value, list) or not value:
        return value
    if isinstance(value[0], dict) and "class" in value[0]:
        return _node(iter(value))
    return [_value(each) for each in value]


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for each in value:
            yield from _flat(each)
    else:
        yield value
