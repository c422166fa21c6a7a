"""The critical path."""

from headrace.graph.critical import critical_path, remaining
from headrace.graph.dag import Dag
from headrace.graph.render import as_levels

DIAMOND = Dag({"B": ["a"], "C": ["a"], "D": ["B", "C"], "Z": ["a"]})
SECONDS = {"B": 1.0, "C": 5.0, "D": 2.0, "Z": 6.5}


def test_what_is_still_to_come():
    assert remaining(DIAMOND, SECONDS) == {"a": 7.0, "B": 3.0, "C": 7.0, "D": 2.0, "Z": 6.5}


def test_what_is_late_lengthens_the_ways_that_end_there():
    late = {"B": 20.0, "D": 1.0, "Z": -5.0}
    assert remaining(DIAMOND, SECONDS, late) == {"a": 21.0, "B": 21.0, "C": 8.0, "D": 3.0, "Z": 6.5}


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


def test_the_members_of_a_cycle_take_the_time_of_all():
    dag = Dag({"B": ["a", "C"], "C": ["B"], "D": ["C"], "E": ["a"], "F": ["F", "E"]})
    seconds = {"B": 1.0, "C": 2.0, "D": 1.0, "E": 1.0, "F": 1.5}
    assert remaining(dag, seconds) == {"a": 4.0, "B": 4.0, "C": 4.0, "D": 1.0, "E": 2.5, "F": 1.5}
    assert critical_path(dag, seconds) == ("a", "B", "C", "D")
    assert as_levels(dag, seconds).splitlines() == [
        "level 0: a",
        "level 1: B ⇄ C, E",
        "level 2: D, F ⇄ F",
        "critical path, 4.00 s: a → B 1.00 s → C 2.00 s → D 1.00 s",
    ]
