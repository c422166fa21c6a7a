"""Run events and spans of refreshes, as real receivers on loopback get them; no Spark is started."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from catalog_kit.samples import lake
from kit.receiver import Receiver, receiver
from kit.waiting import until
from kit.watched import details, watched_project
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from headrace import Headrace, config
from headrace.catalog import Catalog, Mirror
from headrace.config import Settings
from headrace.config.exporter_settings import OpenLineageSettings, TracesSettings
from headrace.errors import UserError
from headrace.events import (
    CycleFinished,
    CycleStarted,
    Event,
    Events,
    Notice,
    RefreshFailed,
    RefreshFinished,
    RefreshGivenUp,
    RefreshStarted,
    SinkFailed,
    SinkWritten,
    StageFinished,
    StageStarted,
)
from headrace.observability.event_delivery import MOST_WAITING
from headrace.observability.exporting.open_exporters import installed
from headrace.observability.exporting.refresh_delivery import Refresh, RefreshDelivery
from headrace.sources.postgres.setup.open_capture import options_of

REFRESHED = (
    CycleStarted("refresh"),
    RefreshStarted("s.b", "FULL", "FORCED"),
    StageStarted("s.b", "compute"),
    StageFinished("s.b", "compute", 0.1),
    StageStarted("s.b", "apply"),
    StageFinished("s.b", "apply", 0.1),
    RefreshFinished("s.b", "FULL", 3, 1, 0.2),
    CycleFinished("refresh"),
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    settings, _ = watched_project(tmp_path_factory.mktemp("exported"))
    with Catalog.open(settings.catalog_url) as catalog:
        for table in catalog.stream_tables():
            if table.name.table == "b":
                query = "SELECT sum(k) AS k FROM s.a WHERE k > 1 GROUP BY k"
                catalog.alter_stream_table(table.name, details=details(query, table.sources))
    return settings


@pytest.fixture
def server() -> Iterator[Receiver]:
    with receiver() as found:
        yield found


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "OTEL_SERVICE_NAME",
        "OTEL_SDK_DISABLED",
        "TRACEPARENT",
        "OPENLINEAGE_URL",
    ):
        monkeypatch.delenv(name, raising=False)


def told(settings: Settings, *events: Event) -> list[str]:
    """Have a project tell events; returns its notices."""
    notices: list[str] = []
    with Headrace(settings, create=False) as hr:
        hr.events.subscribe(lambda e: notices.append(e.message) if isinstance(e, Notice) else None)
        for event in events:
            hr.events.emit(event)
    return notices


def to_lineage(project: Settings, url: str, **more: Any) -> Settings:
    return replace(project, openlineage=OpenLineageSettings(url, namespace="shop", **more))


def to_traces(project: Settings, url: str | None, **more: Any) -> Settings:
    return replace(project, traces=TracesSettings(endpoint=url, **more))


# ---- OpenLineage


def test_a_refresh_is_a_run_of_its_cycle(project: Settings, server: Receiver) -> None:
    assert told(to_lineage(project, server.url), *REFRESHED) == []
    assert {path for path, _, _ in server.requests} == {"/api/v1/lineage"}
    events = server.documents
    assert [(e["job"]["name"], e["eventType"]) for e in events] == [
        ("cycle", "START"),
        ("s.b", "START"),
        ("s.b", "COMPLETE"),
        ("cycle", "COMPLETE"),
    ]
    cycle, began, ended, over = events
    assert (cycle["run"]["runId"], began["run"]["runId"]) == (over["run"]["runId"], ended["run"]["runId"])
    for event in (began, ended):
        parent = event["run"]["facets"]["parent"]
        assert (parent["run"]["runId"], parent["job"]["name"]) == (cycle["run"]["runId"], "cycle")
        assert event["job"]["namespace"] == "shop"
        assert event["run"]["facets"]["processing_engine"]["name"] == "Headrace"
    assert ended["job"]["facets"]["sql"]["query"].startswith("SELECT")
    assert ended["job"]["facets"]["jobType"]["jobType"] == "STREAM_TABLE"
    refresh = ended["run"]["facets"]["headrace_refresh"]
    assert (refresh["mode"], refresh["reason"], refresh["rowsInserted"]) == ("FULL", "FORCED", 3)


def test_datasets_have_schema_version_lineage_and_statistics(project: Settings, server: Receiver) -> None:
    told(to_lineage(project, server.url), *REFRESHED)
    (ended,) = (e for e in server.documents if (e["job"]["name"], e["eventType"]) == ("s.b", "COMPLETE"))
    (read,), (written,) = ended["inputs"], ended["outputs"]
    with Catalog.open(project.catalog_url) as catalog, catalog.reading() as reader:
        newest = {str(name): version for name, version in reader.newest_versions().items()}
    assert (read["namespace"], read["name"], written["name"]) == ("shop", "s.a", "s.b")
    assert written["facets"]["version"]["datasetVersion"] == str(newest["s.b"].snapshot_id)
    assert read["facets"]["version"]["datasetVersion"] == str(newest["s.a"].snapshot_id)
    assert written["outputFacets"]["outputStatistics"]["rowCount"] == 3
    field = written["facets"]["schema"]["fields"][0]
    assert (field["name"], field["type"]) == ("k", "bigint")
    lineage = written["facets"]["columnLineage"]
    (origin,) = lineage["fields"]["k"]["inputFields"]
    assert (origin["namespace"], origin["name"], origin["field"]) == ("shop", "s.a", "k")
    assert [(t["type"], t["subtype"]) for t in origin["transformations"]] == [("DIRECT", "AGGREGATION")]
    (rows,) = lineage["dataset"]
    assert [(t["type"], t["subtype"]) for t in rows["transformations"]] == [
        ("INDIRECT", "FILTER"),
        ("INDIRECT", "GROUP_BY"),
    ]


def test_failures_and_what_comes_to_nothing(project: Settings, server: Receiver) -> None:
    told(
        to_lineage(project, server.url, api_key_env="HOME"),
        CycleStarted("schedule"),
        RefreshStarted("s.b", "DIFFERENTIAL", None),
        RefreshStarted("s.c", "DIFFERENTIAL", None),
        RefreshFailed("s.c", "QUERY_FAILED", "Division by zero."),
        CycleFinished("schedule"),
        RefreshFailed("s.e", "QUERY_FAILED", "It failed before it began."),
        RefreshStarted("s.d", "NO_CHANGE", None),
        RefreshFinished("s.d", "NO_CHANGE", 0, 0, 0.1),
    )
    ends = {e["job"]["name"]: e for e in server.documents if e["eventType"] != "START"}
    assert {name: e["eventType"] for name, e in ends.items()} == {
        "s.b": "ABORT",
        "s.c": "FAIL",
        "s.e": "FAIL",
        "cycle": "COMPLETE",
    }
    assert ends["s.c"]["run"]["facets"]["errorMessage"]["message"] == "[QUERY_FAILED] Division by zero."
    assert "outputStatistics" not in ends["s.c"]["outputs"][0].get("outputFacets", {})
    assert "parent" not in ends["s.e"]["run"]["facets"]
    assert server.requests[0][1]["Authorization"].startswith("Bearer /")


def test_a_refresh_that_goes_on_in_another_mode_is_one_run(project: Settings, server: Receiver) -> None:
    told(
        to_lineage(project, server.url),
        RefreshStarted("s.b", "DIFFERENTIAL", None),
        RefreshStarted("s.b", "FULL", "CHANGE_FAILED"),
        RefreshFinished("s.b", "FULL", 3, 1, 0.2),
    )
    assert [e["eventType"] for e in server.documents] == ["START", "COMPLETE"]
    assert len({e["run"]["runId"] for e in server.documents}) == 1
    refresh = server.documents[1]["run"]["facets"]["headrace_refresh"]
    assert (refresh["mode"], refresh["reason"]) == ("FULL", "CHANGE_FAILED")


def test_an_attempt_that_is_given_up_ends_before_the_next_one(project: Settings, server: Receiver) -> None:
    attempt = RefreshStarted("s.b", "DIFFERENTIAL", None)
    told(
        to_lineage(project, server.url),
        CycleStarted("schedule"),
        attempt,
        RefreshGivenUp("s.b"),
        RefreshGivenUp("s.c"),  # which never began
        attempt,
        RefreshFinished("s.b", "DIFFERENTIAL", 3, 1, 0.0),
        CycleFinished("schedule"),
    )
    runs = [(e["eventType"], e["run"]["runId"]) for e in server.documents if e["job"]["name"] != "cycle"]
    assert [kind for kind, _ in runs] == ["START", "ABORT", "START", "COMPLETE"]
    assert runs[0][1] == runs[1][1] != runs[2][1] == runs[3][1]


def test_landings_and_sinks_are_runs(project: Settings, server: Receiver) -> None:
    url = "postgresql://reader@db.example.com/crm"
    with Catalog.open(project.catalog_url) as catalog:
        mirrors = [Mirror(lake("shop.items"), lake("_headrace.shop_items_log"))]
        catalog.create_source("shop", "postgres", options_of("shop", url, {"items": ("public", "items")}), mirrors)
        options = {"url": url, "table": ["public", "out"], "key": [], "placement": "auto", "on_conflict": "refuse"}
        catalog.create_sink("out", "5f0c", "postgres", lake("s.b"), options, None)
    told(
        to_lineage(project, server.url),
        CycleStarted("schedule"),
        RefreshStarted("shop", "LAND", None),
        RefreshFinished("shop", "LAND", 5, 0, 0.1),
        SinkWritten("out", 4, 2, 1, 0.05),
        CycleFinished("schedule"),
        RefreshStarted("shop", "LAND", None),
        RefreshFailed("shop", "SOURCE_UNREACHABLE", "No answer."),
        SinkFailed("out", "SINK_UNREACHABLE", "No answer."),
        SinkWritten("dropped meanwhile", 4, 2, 1, 0.05),
    )
    runs = [(e["job"]["name"], e["eventType"]) for e in server.documents]
    assert runs == [
        ("cycle", "START"),
        ("source shop", "START"),
        ("source shop", "COMPLETE"),
        ("sink out", "START"),
        ("sink out", "COMPLETE"),
        ("cycle", "COMPLETE"),
        ("source shop", "START"),
        ("source shop", "FAIL"),
        ("sink out", "START"),
        ("sink out", "FAIL"),
    ]
    landed, written = server.documents[2], server.documents[4]
    sets = lambda e: [[(d["namespace"], d["name"]) for d in e[side]] for side in ("inputs", "outputs")]  # noqa: E731
    assert sets(landed) == [[("postgres://db.example.com:5432", "crm.public.items")], [("shop", "shop.items")]]
    assert sets(written) == [[("shop", "s.b")], [("postgres://db.example.com:5432", "crm.public.out")]]
    assert written["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 2
    assert landed["run"]["facets"]["headrace_refresh"]["rowsInserted"] == 5
    assert landed["run"]["facets"]["parent"]["job"]["name"] == "cycle"
    assert written["run"]["facets"]["parent"]["job"]["name"] == "cycle"
    for failed in (server.documents[7], server.documents[9]):
        assert failed["run"]["facets"]["errorMessage"]["message"].endswith("UNREACHABLE] No answer.")
        assert "parent" not in failed["run"]["facets"]
    assert "reader" not in json.dumps(server.documents)


def test_looking_for_work_is_no_run(project: Settings, server: Receiver) -> None:
    told(to_lineage(project, server.url), CycleStarted("schedule"), CycleFinished("schedule"))
    assert server.requests == []


def test_other_transports_are_the_librarys(project: Settings, tmp_path: Path) -> None:
    file = tmp_path / "events.json"
    transport = {"type": "file", "log_file_path": str(file), "append": True}
    assert told(replace(project, openlineage=OpenLineageSettings(transport=transport)), *REFRESHED) == []
    events = [json.loads(line) for line in file.read_text().splitlines()]
    assert [e["eventType"] for e in events] == ["START", "START", "COMPLETE", "COMPLETE"]
    assert events[0]["job"]["namespace"] == project.root.name


# ---- OpenTelemetry


def spans_of(server: Receiver) -> dict[str, Any]:
    found = {}
    for path, _, body in server.requests:
        assert path == "/v1/traces"
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                found |= {span.name: (span, resource.resource) for span in scope.spans}
    return found


def attributes(of: Any) -> dict[str, object]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in of.attributes}


def test_spans_of_cycle_refresh_and_stages(project: Settings, server: Receiver) -> None:
    assert told(to_traces(project, server.url), *REFRESHED, SinkWritten("out", 4, 2, 1, 0.05)) == []
    found = spans_of(server)
    assert found.keys() == {"cycle", "refresh s.b", "compute", "apply", "sink out"}
    cycle, refresh, compute, apply = (found[name][0] for name in ("cycle", "refresh s.b", "compute", "apply"))
    assert not cycle.parent_span_id
    assert refresh.parent_span_id == cycle.span_id
    assert {compute.parent_span_id, apply.parent_span_id} == {refresh.span_id}
    assert {span.trace_id for span in (refresh, compute, apply)} == {cycle.trace_id}
    assert cycle.start_time_unix_nano <= compute.start_time_unix_nano <= compute.end_time_unix_nano
    assert compute.end_time_unix_nano <= refresh.end_time_unix_nano <= cycle.end_time_unix_nano
    assert refresh.end_time_unix_nano - refresh.start_time_unix_nano >= 200_000_000
    assert attributes(refresh) == {
        "headrace.table": "s.b",
        "headrace.mode": "FULL",
        "headrace.reason": "FORCED",
        "headrace.rows_inserted": 3,
        "headrace.rows_deleted": 1,
    }
    assert attributes(cycle) == {"headrace.started_by": "refresh"}
    service = attributes(found["cycle"][1])
    assert (service["service.name"], service["headrace.project"]) == ("headrace", project.root.name)


def test_stages_before_a_fall_back_to_full_stay_in_the_trace(project: Settings, server: Receiver) -> None:
    told(
        to_traces(project, server.url),
        RefreshStarted("s.b", "DIFFERENTIAL", None),
        StageStarted("s.b", "compute change"),
        StageFinished("s.b", "compute change", 0.1),
        RefreshStarted("s.b", "FULL", "CHANGE_FAILED"),
        StageStarted("s.b", "overwrite"),
        StageFinished("s.b", "overwrite", 0.1),
        RefreshFinished("s.b", "FULL", 3, 1, 0.0),
    )
    found = spans_of(server)
    assert found.keys() == {"refresh s.b", "compute change", "overwrite"}
    assert attributes(found["refresh s.b"][0])["headrace.reason"] == "CHANGE_FAILED"


def test_failures_are_spans_with_a_code(project: Settings, server: Receiver) -> None:
    told(
        to_traces(project, server.url + "/v1/traces", service_name="mill"),
        RefreshFailed("s.b", "QUERY_FAILED", "Division by zero."),
        SinkFailed("out", "SINK_UNREACHABLE", "It does not answer."),
    )
    (failed, resource), (sink, _) = (spans_of(server)[name] for name in ("s.b", "sink out"))
    assert (failed.status.code, failed.status.message) == (2, "Division by zero.")
    assert attributes(failed)["error.type"] == "QUERY_FAILED"
    assert (sink.status.code, attributes(sink)["error.type"]) == (2, "SINK_UNREACHABLE")
    assert attributes(resource)["service.name"] == "mill"


def test_the_environment_turns_traces_on_and_off(
    project: Settings, server: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.url)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "from-outside")
    monkeypatch.setenv("TRACEPARENT", f"00-{trace}-b7ad6b7169203331-01")
    told(project, *REFRESHED)
    found = spans_of(server)
    assert attributes(found["cycle"][1])["service.name"] == "from-outside"
    assert found["cycle"][0].trace_id.hex() == trace
    arrived = len(server.requests)
    told(to_traces(project, None, enabled=False), *REFRESHED)
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    told(project, *REFRESHED)
    monkeypatch.delenv("OTEL_TRACES_EXPORTER")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    told(project, *REFRESHED)
    assert len(server.requests) == arrived


# ---- trouble


@pytest.mark.parametrize("to", [to_lineage, to_traces])
def test_a_receiver_that_never_answers_holds_nothing_up(to: Any, project: Settings, server: Receiver) -> None:
    server.open.clear()
    notices: list[str] = []
    with Headrace(to(project, server.url), create=False) as hr:
        hr.events.subscribe(lambda e: notices.append(e.message) if isinstance(e, Notice) else None)
        start = time.monotonic()
        for _ in range(MOST_WAITING // 2):
            for event in REFRESHED[1:-1]:
                hr.events.emit(event)
        assert time.monotonic() - start < 20  # each would wait for seconds
        until(lambda: notices)
        assert len(notices) == 1
        server.open.set()
    assert "do not arrive" in notices[0]
    assert server.url not in notices[0]


def test_a_cycle_whose_end_was_lost_ends() -> None:
    events, go, said = Events(), threading.Event(), list[str]()

    class Hanging(RefreshDelivery):
        def cycle_began(self, at: int, by: str) -> None:
            said.append("cycle")

        def began(self, refresh: Refresh) -> None:
            said.append("refresh")
            go.wait(30)

        def ended(self, refresh: Refresh) -> None:
            said.append("abandoned" if refresh.abandoned else "refreshed")

        def cycle_ended(self, at: int) -> None:
            said.append("end")

    with Hanging(events, "hanging", "Spans") as delivery:
        for event in REFRESHED:
            events.emit(event)
        until(lambda: "refresh" in said)
        for _ in range(MOST_WAITING):  # what ends the refresh and its cycle is lost
            events.emit(SinkFailed("s", "SINK_LOST", "It is away."))
        go.set()
        until(lambda: not any(delivery._waiting))
        for event in 2 * REFRESHED:
            events.emit(event)
    assert said == ["cycle", "refresh", "abandoned", "end"] + 2 * ["cycle", "refresh", "refreshed", "end"]


def test_what_nobody_waits_for_at_the_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.observability.event_delivery.PATIENCE_SECONDS", 0.1)
    events, told, go = Events(), list[str](), threading.Event()
    events.subscribe(lambda event: told.append(event.message) if isinstance(event, Notice) else None)

    class Slow(RefreshDelivery):
        def began(self, refresh: Refresh) -> None:
            go.wait(30)
            raise OSError("they are refused, too")  # later than anybody listens

    with Slow(events, "slow", "Spans") as delivery:
        for event in REFRESHED:
            events.emit(event)
    go.set()
    until(lambda: not delivery._thread.is_alive())
    assert [text.partition(":")[0] for text in told] == ["Spans do not arrive"]


@pytest.mark.parametrize("to", [to_lineage, to_traces])
def test_trouble_is_told_once_until_it_is_over(to: Any, project: Settings, server: Receiver) -> None:
    notices: list[str] = []
    with Headrace(to(project, server.url), create=False) as hr:
        hr.events.subscribe(lambda e: notices.append(e.message) if isinstance(e, Notice) else None)
        for status, expected in ((400, 1), (400, 1), (200, 1), (400, 2)):
            server.status, before = status, len(server.requests)
            for event in REFRESHED[1:-1]:
                hr.events.emit(event)
            until(lambda before=before: len(server.requests) > before)
            until(lambda expected=expected: len(notices) == expected)
            time.sleep(0.2)
    assert len(notices) == 2


def test_a_package_that_is_missing_is_told_where_a_section_asks_for_it() -> None:
    events, notices = Events(), []
    events.subscribe(lambda e: notices.append(e.message) if isinstance(e, Notice) else None)
    assert not installed("no_such_package.at_all", "otel", "", events)
    assert notices == []
    assert not installed("no_such_package.at_all", "otel", "[traces]", events)
    assert "[traces] needs packages" in notices[0]
    assert "pip install 'headrace[otel]'" in notices[0]
    assert installed("opentelemetry.sdk", "otel", "[traces]", events)


# ---- settings


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[openlineage]\nurl = 5", "OpenLineage"),
        ('[openlineage]\nurl = "host:5000"', "http://host:5000"),
        ('[openlineage]\nurl = "http://h"\ntransport = { type = "file" }', "transport"),
        ("[openlineage]\ntransport = { url = 'http://h' }", "transport"),
        ('[openlineage]\nurls = "http://h"', "Did you mean url?"),
        ('[traces]\nendpoint = "host"', "http://host:4318"),
        ("[traces]\nenabled = 1", "enabled = false"),
        ('[traces]\nendpoints = "http://h"', "Did you mean endpoint?"),
        ("openlineage = 1", "openlineage"),
    ],
)
def test_settings_that_are_not_understood(tmp_path: Path, text: str, word: str) -> None:
    (tmp_path / "headrace.toml").write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        config.load(tmp_path)
    assert caught.value.code == "CONFIG_INVALID"
    assert word in str(caught.value)


def test_settings_are_off_by_default(tmp_path: Path) -> None:
    (tmp_path / "headrace.toml").write_text("", encoding="utf-8")
    settings = config.load(tmp_path)
    assert settings.openlineage is None
    assert not settings.traces.wanted({})
    (tmp_path / "headrace.toml").write_text(
        '[openlineage]\nenabled = false\nurl = "http://h"\n[traces]\nenabled = true'
    )
    settings = config.load(tmp_path)
    assert settings.openlineage is None
    assert settings.traces.wanted({})
