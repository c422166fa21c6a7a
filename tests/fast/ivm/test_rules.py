"""Every operator has a rule or a stated reason for having none."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from dataclasses import is_dataclass

import headrace.ivm as ivm
from headrace.algebra import relations
from headrace.algebra.relations import Relation
from headrace.ivm.rules.registry import NO_RULE, RULES

NODES = {
    node
    for _, node in inspect.getmembers(relations, inspect.isclass)
    if issubclass(node, Relation) and is_dataclass(node)
}


def test_every_operator_has_a_rule_or_a_reason() -> None:
    assert RULES.keys() | NO_RULE.keys() == NODES
    assert not RULES.keys() & NO_RULE.keys()
    assert all(reason.strip() for reason in NO_RULE.values())


def test_a_rule_lives_in_the_file_named_after_its_operator_and_cites_its_source() -> None:
    for node, rule in RULES.items():
        snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", node.__name__).lower()
        assert rule.__module__ == f"headrace.ivm.rules.{snake}"
        module = importlib.import_module(rule.__module__)
        assert "Source:" in (module.__doc__ or "")
        assert "Δ" in (module.__doc__ or "")


def test_no_module_of_the_rules_knows_an_engine() -> None:
    for module in pkgutil.walk_packages(ivm.__path__, "headrace.ivm."):
        source = inspect.getsource(importlib.import_module(module.name))
        assert "sqlglot" not in source
        assert "pyspark" not in source
