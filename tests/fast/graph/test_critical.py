"""The critical path."""

from headrace.graph.critical import critical_path, remaining
from headrace.graph.dag import Dag
from headrace.graph.render import as_levels

DIAMOND = Dag({"B": ["a"], "C": ["a"], "D": ["B", "C"], "Z": ["a"]})
SECONDS = {"B": 1.0, "C": 5.0, "D": 2.0, "Z": 6.5}


def test_what_is_still_to_come():
    assert remaining(DIAMOND, SECONDS) == {"a": 7.0, "B": 3.0, "C": 7.0, "D": 2.0, "Z": 6.5}


def test_the_longest_way():
    assert critical_path(DIAMOND, SECONDS) == ("a", "C", "D")
    assert critical_path(Dag({}), {}) == ()


def test_levels_and_the_critical_path_are_shown():
    assert as_levels(DIAMOND, SECONDS).splitlines() == [
        "level 0: a",
        "level 1: B, C, Z",
        "level 2: D",
        "critical path, 7.00 s: a → C 5.00 s → D 2.00 s",
    ]
    assert as_levels(Dag({}), {}) == ""
