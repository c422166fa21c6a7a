"""Run events and spans of refreshes that Spark runs, as receivers on loopback get them; and lineage beside it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.conftest import Run
from kit.receiver import Receiver, receiver
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from headrace import config
from headrace.catalog import Catalog


@pytest.fixture
def servers(project: Path) -> Iterator[tuple[Receiver, Receiver]]:
    """Two receivers that the project's file names."""
    file = project / "headrace.toml"
    before = file.read_text(encoding="utf-8")
    with receiver() as runs, receiver() as spans:
        sections = f'[openlineage]\nurl = "{runs.url}"\nnamespace = "mill"\n[traces]\nendpoint = "{spans.url}"\n'
        file.write_text(f"{before}\n{sections}", encoding="utf-8")
        yield runs, spans
    file.write_text(before, encoding="utf-8")


@pytest.mark.usefixtures("alone")
def test_refreshes_are_sent_with_versions_and_stages(
    ns: str, done: Run, run: Run, project: Path, servers: tuple[Receiver, Receiver]
) -> None:
    runs, spans = servers
    name, above = f"{ns}.revenue", f"{ns}.high"
    done("create", name, f"SELECT region, sum(amount) AS total FROM {ns}.orders WHERE id > 0 GROUP BY region")
    done("create", above, f"SELECT region AS r FROM {name} WHERE total > 10")
    done("sql", f"INSERT INTO {ns}.orders VALUES (4, 'US', 11.00)")
    runs.requests.clear()
    spans.requests.clear()
    done("refresh")

    ended = {e["job"]["name"]: e for e in runs.documents if e["eventType"] == "COMPLETE"}
    assert Counter(e["eventType"] for e in runs.documents) == {"START": 3, "COMPLETE": 3}
    assert ended.keys() == {"cycle", name, above}
    (written,) = ended[name]["outputs"]
    with Catalog.open(config.load(project).catalog_url) as catalog, catalog.reading() as reader:
        newest = {str(each): version.snapshot_id for each, version in reader.newest_versions().items()}
    assert written["facets"]["version"]["datasetVersion"] == str(newest[name])
    assert [d["facets"]["version"]["datasetVersion"] for d in ended[above]["inputs"]] == [str(newest[name])]
    assert [f["type"] for f in written["facets"]["schema"]["fields"]] == ["string", "decimal(22,2)"]
    lineage = json.loads(done("lineage", name, "--json").stdout)
    fields = written["facets"]["columnLineage"]["fields"]
    assert {c["name"]: c["origins"][0]["influence"] for c in lineage["columns"]} == {
        column: of["inputFields"][0]["transformations"][0]["subtype"] for column, of in fields.items()
    }

    requests = [ExportTraceServiceRequest.FromString(body) for _, _, body in spans.requests]
    found = [s for r in requests for of in r.resource_spans for scope in of.scope_spans for s in scope.spans]
    by_name = {span.name: span for span in found}
    refresh = by_name[f"refresh {name}"]
    inside = [span for span in found if span.parent_span_id == refresh.span_id]
    assert {span.trace_id for span in found} == {by_name["cycle"].trace_id}
    assert refresh.parent_span_id == by_name["cycle"].span_id
    assert len(inside) > 1
    assert all(span.start_time_unix_nano >= refresh.start_time_unix_nano for span in inside)


def test_a_receiver_that_is_away_is_told_and_fails_nothing(
    ns: str, done: Run, servers: tuple[Receiver, Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    # the client's modules are imported with the first event, which may take as long
    monkeypatch.setattr("headrace.observability.event_delivery.PATIENCE_SECONDS", 60.0)
    runs, spans = servers
    runs.status = spans.status = 403
    created = done("create", f"{ns}.a", f"SELECT id FROM {ns}.orders")
    assert "FULL +3" in created.stderr
    assert created.stderr.count("OpenLineage's run events do not arrive: 403") == 1
