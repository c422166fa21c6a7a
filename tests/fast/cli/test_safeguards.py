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
