"""Sinks on the command line and in headrace.toml, without Spark: lists, declarations, refusals."""

from __future__ import annotations

from pathlib import Path

import pytest
from catalog_kit.ready import ready_project
from catalog_kit.stream_tables import create_stream_table, drop_stream_table
from click.testing import CliRunner

from headrace.catalog import Catalog, Definition
from headrace.cli.main import app
from headrace.config import DeclaredSink, load
from headrace.errors import EnvironmentFault, UserError
from headrace.names import LAKE, TableName
from headrace.project.declared_sinks import steps

STREAM = TableName(LAKE, ("shop",), "revenue")
OPTIONS = {"url": "service=web", "table": ["public", "t"], "key": ["a"], "placement": "auto", "on_conflict": "refuse"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    ready_project(tmp_path / "p")
    return tmp_path / "p"


@pytest.fixture
def catalog(project: Path) -> Catalog:
    catalog = Catalog.open(load(project).catalog_url)
    create_stream_table(catalog, Definition(STREAM, "SELECT 1", ()))
    catalog.create_sink("out", "5f0c", "postgres", STREAM, OPTIONS, None)
    return catalog


def run(project: Path, *words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["--project", str(project), "sink", *words])
    return result.exit_code, result.output


def test_the_life_of_a_sink_in_the_catalog(catalog: Catalog, project: Path) -> None:
    fault = EnvironmentFault("SINK_UNREACHABLE", "It is away.", hint="Wait.", retryable=True)
    now = catalog.sink("out").created_at
    catalog.note_sink_failure("out", fault, lambda failures: now, stops=False)
    catalog.note_sink_failure("out", fault, lambda failures: now, stops=False)
    code, text = run(project, "list")
    assert (code, "out failed 2 times in a row: [SINK_UNREACHABLE]" in " ".join(text.split())) == (0, True)
    catalog.note_sink_written("5f0c", 4, 10)
    assert (catalog.sink("out").failures, catalog.sink("out").failure) == (0, None)
    assert run(project, "pause", "out")[0] == 0
    catalog.note_sink_written("5f0c", 5, 11)
    assert (catalog.sink("out").status.value, catalog.sink("out").version) == ("PAUSED", 5)
    assert run(project, "resume", "out")[0] == 0
    catalog.note_sink_failure("out", UserError("SINK_TARGET_CHANGED", "Changed."), lambda failures: now, stops=True)
    code, text = run(project, "status", "out")
    assert (code, "out is stopped: Changed." in text) == (0, True)
    assert run(project, "pause", "out")[0] != 0
    assert run(project, "alter", "out", "--schedule", "1 hour", "--on-conflict", "overwrite")[0] == 0
    sink = catalog.sink("out")
    assert (sink.schedule, sink.options["on_conflict"], sink.options["key"]) == ("1 hour", "overwrite", ["a"])
    assert run(project, "alter", "out", "--clear-schedule")[0] == 0
    assert catalog.sink("out").schedule is None
    with pytest.raises(UserError, match="HAS_SINKS"):
        drop_stream_table(catalog, STREAM)


def test_a_sink_of_a_table_with_an_odd_name_is_altered(catalog: Catalog, project: Path) -> None:
    odd = {**OPTIONS, "table": ["public", "Order items"]}
    catalog.create_sink("odd", "77ab", "postgres", STREAM, odd, None)
    assert run(project, "alter", "odd", "--on-conflict", "overwrite")[0] == 0
    assert catalog.sink("odd").options == {**odd, "on_conflict": "overwrite"}
    assert 'public."Order items"' in run(project, "status", "odd")[1]


@pytest.mark.parametrize(
    "words",
    [
        ("status", "nobody"),
        ("alter", "out", "--schedule", "DOWNSTREAM"),
        ("alter", "out", "--schedule", "now and then"),
        ("drop", "nobody"),
        ("write", "nobody"),
        ("verify", "nobody"),
    ],
)
def test_mistakes_are_told(catalog: Catalog, project: Path, words: tuple[str, ...]) -> None:
    code, text = run(project, *words)
    assert code != 0
    assert "Traceback" not in text


def declared(**given: object) -> DeclaredSink:
    return DeclaredSink(**{"stream": "shop.revenue", "url": "service=web", "table": "t", "key": ("a",), **given})  # type: ignore[arg-type]


def test_what_is_declared_is_made(catalog: Catalog, project: Path) -> None:
    def actions(**sinks: DeclaredSink) -> list[str]:
        return [step.action for step in steps(sinks, catalog.sinks(), lambda text: STREAM)]

    assert actions(out=declared(), new=declared()) == ["nothing", "create"]
    assert actions(out=declared(schedule="1 hour")) == ["alter"]
    assert actions(out=declared(options={"on_conflict": "overwrite"})) == ["alter"]
    for other in ({"url": "service=other"}, {"table": "x"}, {"key": ()}):
        with pytest.raises(UserError, match="SINK_DIFFERS"):
            actions(out=declared(**other))
    file = project / "headrace.toml"
    own = '\n[sinks.out]\nfrom = "shop.revenue"\nurl_env = "WEB"\ntable = "t"\nkey = ["a"]\non_conflict = "overwrite"\n'
    file.write_text(file.read_text(encoding="utf-8") + own, encoding="utf-8")
    assert load(project).sinks == {"out": declared(url="env:WEB", options={"on_conflict": "overwrite"})}
    file.write_text(file.read_text(encoding="utf-8") + '\n[sinks.bad]\nfrom = "a.b"\n', encoding="utf-8")
    with pytest.raises(UserError, match="CONFIG_INVALID"):
        load(project)
