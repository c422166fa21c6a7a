"""What the bench says of itself, and what it computes from what it has measured, without Spark."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from bench.__main__ import SUITES
from bench.growth_picture import PROCESSOR, Point, draw
from bench.tpch22 import charged, reading
from headrace.demo import tpch22
from headrace.results.refresh_results import Mode, RefreshResult

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
SVG = "{http://www.w3.org/2000/svg}"


def refreshed(name: str, seconds: float, **stages: float) -> RefreshResult:
    named = {title.replace("_", " "): took for title, took in stages.items()}
    return RefreshResult(name, Mode.DIFFERENTIAL, None, None, 0, 0, seconds, {}, named)


def test_every_suite_has_a_row_of_what_it_measures() -> None:
    rows = set(re.findall(r"^\| `([\w-]+)` \|", (ROOT / "BENCHMARKS.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert rows == set(SUITES)


@pytest.mark.parametrize("module", ["bench", "bench.suites"])
def test_it_starts_where_nothing_tells_python_of_the_test_kit(module: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-m", module, "--help"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: ")


def test_what_is_read_together_is_charged_in_equal_parts() -> None:
    first = refreshed("a", 5.0, read_change_of_orders=4.0, write=1.0)
    second = refreshed("b", 1.5, read_change_of_orders=0.0, write=1.5)
    alone = refreshed("c", 2.0, write=2.0)
    assert charged({"a": first, "b": second, "c": alone}) == {"a": 3.0, "b": 3.5, "c": 2.0}


def test_three_queries_read_nothing_that_changes() -> None:
    assert set(tpch22.NAMES) - set(reading(tpch22.NAMES)) == {"q02", "q11", "q16"}


def test_the_picture_is_drawn_from_the_points_beside_it() -> None:
    points = [Point(**point) for point in json.loads((IMAGES / "growth.json").read_text(encoding="utf-8"))[PROCESSOR]]
    assert (IMAGES / "growth.svg").read_text(encoding="utf-8") == draw(points, 6000, PROCESSOR)


@pytest.mark.parametrize("last", [Point(10, 24, 34, 530), Point(10, 50, 51, 52), Point(10, 500, 501, 9)])
def test_names_of_curves_keep_apart_and_above_the_axis(last: Point) -> None:
    picture = ET.fromstring(draw([Point(1, 14, 16, 33), last], 6000))
    heights = [float(text.attrib["y"]) for text in picture.iter(f"{SVG}text") if "name" in text.attrib["class"]]
    assert len(heights) == 3
    assert max(heights) + 15 < 300 < min(heights) + 300
    assert all(abs(a - b) >= 30 for a in heights for b in heights if a is not b)


def test_heights_are_in_proportion() -> None:
    picture = ET.fromstring(draw([Point(1, 100, 200, 300), Point(2, 100, 200, 400)], 6000))
    heights = {float(dot.attrib["cy"]) for dot in picture.iter(f"{SVG}circle")}
    low, *between, high = sorted(300 - height for height in heights)
    assert [round(height / low) for height in between] == [2, 3]
    assert round(high / low) == 4
