"""The verbs that keep changes back; none of these starts Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from catalog_kit.samples import lake
from kit.pipelines import Lake, define

from headrace.catalog import Catalog

from .conftest import Run

EVIDENCE = {
    "rows": 1_200_000,
    "limit": 100_000,
    "rule": "fuse_ceiling",
    "sources": {"s.a": 1_200_000},
    "usual": 1000,
    "largest": 2000,
}


@pytest.fixture
def pipeline(project: Path, tmp_path: Path) -> Path:
    url = f"sqlite:///{project / 'headrace.db'}"
    Lake(url, tmp_path).base("s.a")
    with Catalog.open(url) as catalog:
        define(catalog, "b: a; c: b")
    return project


@pytest.fixture
def catalog(pipeline: Path) -> Iterator[Catalog]:
    with Catalog.open(f"sqlite:///{pipeline / 'headrace.db'}") as opened:
        yield opened


def test_blown_fuses_are_shown_with_the_evidence(run: Run, pipeline: Path, catalog: Catalog) -> None:
    assert run("fuse", "-p", pipeline).output == "No fuse has blown.\n"
    catalog.blow_fuse(lake("s.b"), EVIDENCE)
    assert "1,200,000 rows changed in its sources (1,200,000 of s.a)" in run("fuse", "-p", pipeline).output
    (fuse,) = json.loads(run("fuse", "--json", "-p", pipeline).stdout)
    assert {key: fuse[key] for key in EVIDENCE} == EVIDENCE
    assert json.loads(run("fuse", "s.c", "--json", "-p", pipeline).stdout) == []
    assert json.loads(run("fuse", "lake.s.b", "--json", "-p", pipeline).stdout) == [fuse]
    dry = run("run", "--dry-run", "-p", pipeline).output
    assert "s.b is stopped by its fuse" in dry


def test_a_fuse_that_has_not_blown_cannot_be_resolved(run: Run, pipeline: Path) -> None:
    result = run("fuse", "s.b", "apply", "-p", pipeline)
    assert (result.exit_code, "FUSE_NOT_BLOWN" in result.output) == (1, True)
    assert run("fuse", "s.b", "ignore", "-p", pipeline).exit_code == 2
    assert run("fuse", "s.nothing", "skip", "-p", pipeline).exit_code == 1


@pytest.mark.parametrize(("name", "value"), [("FUSE_CEILING", "-1"), ("FUSE_FACTOR", "much")])
def test_limits_of_a_project_are_checked(
    run: Run, pipeline: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"HEADRACE_{name}", value)
    result = run("status", "-p", pipeline)
    assert (result.exit_code, name.lower() in result.output) == (1, True)


def test_gates(run: Run, pipeline: Path) -> None:
    assert run("gate", "list", "-p", pipeline).output == "No gate is closed.\n"
    assert run("gate", "close", "s.a", "-p", pipeline).output == "Held back: s.a.\n"
    (gate,) = json.loads(run("gate", "list", "--json", "-p", pipeline).stdout)
    assert (gate["source"], gate["version"], gate["holds"]) == ("s.a", 0, ["s.b", "s.c"])
    assert "s.b, s.c" in run("gate", "list", "-p", pipeline).output
    assert json.loads(run("gate", "close", "s.a", "--json", "-p", pipeline).stdout) == ["s.a"]  # it stays where it was
    assert "Held back: s.a." in run("events", "-p", pipeline).output
    assert run("gate", "open", "-p", pipeline).output == "Open: s.a.\n"
    assert run("gate", "open", "-p", pipeline).output == "No gate is closed.\n"


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("close", "s.nothing"), "TABLE_NOT_FOUND"),
        (("close", "s.a", "s.nothing"), "TABLE_NOT_FOUND"),
        (("close", "s.b"), "INVALID_OPTION"),
        (("close", "a..b"), "INVALID_NAME"),
        (("open", "s.a"), "GATE_NOT_CLOSED"),
    ],
)
def test_what_is_no_gate(run: Run, pipeline: Path, args: tuple[str, ...], code: str) -> None:
    result = run("gate", *args, "-p", pipeline)
    assert (result.exit_code, code in result.output) == (1, True)
    assert json.loads(run("gate", "list", "--json", "-p", pipeline).stdout) == []


@pytest.fixture
def two(pipeline: Path, tmp_path: Path, catalog: Catalog) -> Path:
    Lake(f"sqlite:///{pipeline / 'headrace.db'}", tmp_path).base("s.z")
    define(catalog, "d: b z")
    return pipeline


def test_watermarks(run: Run, two: Path) -> None:
    assert run("watermark", "list", "-p", two).output == "There are no watermark groups.\n"
    result = run("watermark", "create", "loads", "s.a", "s.z", "--tolerance", "5 minutes", "-p", two)
    assert result.output.startswith("Created loads")
    run("watermark", "advance", "s.a", "2026-03-01T06:00:00+01:00", "-p", two)
    (group,) = json.loads(run("watermark", "list", "--json", "-p", two).stdout)
    assert group["marks"] == {"s.a": "2026-03-01T05:00:00+00:00", "s.z": None}
    assert (group["agrees"], group["apart"], group["dependants"]) == (False, None, ["s.d"])
    assert "s.a: complete up to 2026-03-01T05:00:00+00:00" in run("events", "-p", two).output
    assert "s.d is waiting for watermark group loads" in run("run", "--dry-run", "-p", two).output
    result = run("refresh", "s.d", "-p", two)
    assert (result.exit_code, "WATERMARKS_APART" in result.output) == (1, True)
    run("watermark", "advance", "s.z", "2026-03-01T05:05:00Z", "-p", two)
    (group,) = json.loads(run("watermark", "list", "--json", "-p", two).stdout)
    assert (group["agrees"], group["apart"]) == (True, 300.0)
    assert "s.d is waiting" not in run("run", "--dry-run", "-p", two).output
    assert "2026-03-01 05:05:00 UTC" in run("watermark", "list", "-p", two).output
    assert run("watermark", "drop", "loads", "-p", two).output == "Dropped loads.\n"


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("create", "g", "s.a", "s.z", "--tolerance", "-5 minutes"), "INVALID_OPTION"),
        (("create", "g", "s.a", "s.z", "--tolerance", "soon"), "INVALID_OPTION"),
        (("create", "g", "s.a", "s.a", "--tolerance", "0 seconds"), "INVALID_OPTION"),
        (("create", " ", "s.a", "s.z", "--tolerance", "0 seconds"), "INVALID_OPTION"),
        (("create", "g", "s.a", "s.b", "--tolerance", "0 seconds"), "INVALID_OPTION"),
        (("create", "g", "s.a", "s.nothing", "--tolerance", "0 seconds"), "TABLE_NOT_FOUND"),
        (("create", "loads", "s.y", "s.x", "--tolerance", "0 seconds"), "WATERMARK_GROUP_EXISTS"),
        (("create", "g", "s.a", "s.x", "--tolerance", "0 seconds"), "WATERMARK_TAKEN"),
        (("drop", "g"), "WATERMARK_GROUP_NOT_FOUND"),
        (("advance", "s.x", "2026-03-01T06:00:00Z"), "WATERMARK_UNKNOWN"),
        (("advance", "s.a", "2026-03-01T06:00:00"), "INVALID_OPTION"),
        (("advance", "s.a", "tomorrow"), "INVALID_OPTION"),
        (("advance", "s.a", "0001-01-01T00:00:00+14:00"), "INVALID_OPTION"),
        (("advance", "s.a", "2025-12-31T00:00:00Z"), "WATERMARK_BACKWARDS"),
    ],
)
def test_what_is_no_watermark(run: Run, two: Path, tmp_path: Path, args: tuple[str, ...], code: str) -> None:
    Lake(f"sqlite:///{two / 'headrace.db'}", tmp_path).base("s.x", "s.y")
    run("watermark", "create", "loads", "s.a", "s.z", "--tolerance", "0 seconds", "-p", two)
    run("watermark", "advance", "s.a", "2026-01-01T00:00:00Z", "-p", two)
    before = run("watermark", "list", "--json", "-p", two).stdout
    result = run("watermark", *args, "-p", two)
    assert (result.exit_code, code in result.output) == (1, True), result.output
    assert run("watermark", "list", "--json", "-p", two).stdout == before
