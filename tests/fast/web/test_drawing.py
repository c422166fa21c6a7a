"""Places of nodes, charts, and what decided how long a run took."""

from __future__ import annotations

import datetime as dt
import random
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from catalog_kit.samples import lake

from headrace.catalog import HistoryEntry, Outcome, RanAs
from headrace.graph.dag import Dag
from headrace.web.drawing.charts import Bar, bar_chart
from headrace.web.drawing.graph_layout import HEIGHT, WIDTH, layout
from headrace.web.drawing.svg import element, shortened
from headrace.web.pages.graph import neighbourhood
from headrace.web.pages.runs import critical, runs_of

START = dt.datetime(2026, 6, 1, tzinfo=dt.UTC)


def random_dag(seed: int, size: int = 40) -> Dag[str]:
    dice = random.Random(seed)
    read = {f"t{n}": [f"t{dice.randrange(n)}" for _ in range(dice.randrange(4))] for n in range(1, size)}
    return Dag({"t0": [], **read})


@pytest.mark.parametrize("seed", range(8))
def test_nothing_overlaps_and_lines_go_from_left_to_right(seed: int) -> None:
    dag = random_dag(seed)
    found = layout(dag)
    assert set(found.places) == set(dag.names)
    boxes = sorted(found.places.values())
    for (x, y), (other_x, other_y) in pairwise(boxes):
        assert x + WIDTH <= other_x or y + HEIGHT <= other_y
    for (producer, consumer), points in found.edges.items():
        assert points[0] == (found.places[producer][0] + WIDTH, found.places[producer][1] + HEIGHT / 2)
        assert points[-1] == (found.places[consumer][0], found.places[consumer][1] + HEIGHT / 2)
        assert [x for x, _ in points] == sorted(x for x, _ in points)
    assert all(0 <= y <= found.height - HEIGHT and x <= found.width - WIDTH for x, y in found.places.values())


def test_the_layout_is_the_same_each_time_and_straight_where_it_can_be() -> None:
    assert layout(random_dag(3)) == layout(random_dag(3))
    chain = layout(Dag({"b": ["a"], "c": ["b"], "d": ["c"]}))
    assert len({y for _, y in chain.places.values()}) == 1
    assert layout(Dag({})).places == {}
    assert set(layout(Dag({"a": ["b"], "b": ["a", "c"]})).places) == {"a", "b", "c"}, "a cycle is drawn, too"


def test_a_neighbourhood() -> None:
    dag = Dag({"b": ["a"], "c": ["b"], "d": ["c"], "x": ["a"]})
    assert neighbourhood(dag, "b", 1) == ["b", "a", "c"]
    assert set(neighbourhood(dag, "b", 2)) == {"a", "b", "c", "d", "x"}


def refreshed(
    name: str, begin: float, end: float, outcome: Outcome = Outcome.OK, ran: RanAs = RanAs.FULL
) -> HistoryEntry:
    at = [START + dt.timedelta(seconds=second) for second in (begin, end)]
    return HistoryEntry(lake(f"s.{name}"), at[0], at[1], ran, outcome)


def test_runs_end_with_a_pause_and_what_found_nothing_is_no_part_of_them() -> None:
    entries = [
        refreshed("b", 0, 5),
        refreshed("c", 6, 7),
        refreshed("d", 20, 21),
        refreshed("e", 30, 31, ran=RanAs.NO_CHANGE),
    ]
    assert [[e.stream.table for e in run] for run in runs_of(entries[::-1])] == [["d"], ["b", "c"]]
    assert runs_of([]) == []


def test_the_critical_path_goes_back_over_what_was_waited_for() -> None:
    graph = Dag({"s.b": ["s.a"], "s.c": ["s.a"], "s.d": ["s.b", "s.c"], "s.e": ["s.d"], "s.x": ["s.a"]})
    run = [refreshed("b", 0, 2), refreshed("c", 0, 4), refreshed("d", 4, 6), refreshed("x", 0, 5), refreshed("e", 6, 7)]
    assert [e.stream.table for e in critical(run, graph)] == ["c", "d", "e"]
    assert critical([], graph) == []


class Attributes(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_bars_are_as_high_as_what_they_show() -> None:
    bars = [Bar(1.0, "full", "one"), Bar(4.0, "differential", 'a "<hint>"', tick=2.0)]
    parts = Attributes(bar_chart("Duration", bars, lambda v: f"{v:.0f} s")).found
    heights = [float(of["height"] or 0) for tag, of in parts if tag == "rect" and "bar" in (of["class"] or "").split()]
    assert heights[1] == pytest.approx(4 * heights[0], rel=0.02)
    assert parts[0][1]["aria-label"] == "Duration: 2 refreshes, the largest 4 s"
    assert "<hint>" not in bar_chart("Duration", bars, str)
    assert "nothing yet" in bar_chart("Duration", [], str)


def test_small_values_are_seen_beside_a_large_one() -> None:
    bars = [Bar(0.3, "differential", "") for _ in range(9)] + [Bar(600.0, "full", "")]
    parts = Attributes(bar_chart("Duration", bars, str)).found
    heights = [float(of["height"] or 0) for tag, of in parts if tag == "rect" and "bar" in (of["class"] or "").split()]
    assert heights[0] > 5
    assert heights[-1] > heights[0]


def test_attributes_and_texts_are_escaped() -> None:
    assert element("a", '<b>"', href='"><script>') == '<a href="&#34;&gt;&lt;script&gt;">&lt;b&gt;&#34;</a>'
    assert shortened("shop.a_name_that_is_far_too_long_for_a_box", 20) == "shop.a_na…_for_a_box"
