"""Metrics and readiness, scraped from a real `headrace run`; no Spark is started."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from kit.pipelines import Lake
from kit.watched import ODD, fail, refresh, watched_project
from prometheus_client.parser import text_string_to_metric_families

from headrace.addresses import Address, parse_address
from headrace.catalog import Catalog
from headrace.config import Settings, load
from headrace.errors import UserError
from headrace.observability.metrics.metric_list import METRICS
from headrace.serve.caller import address, wire

ROOT = Path(__file__).parents[3]
Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


@dataclass
class Watched:
    """A running process and its project."""

    settings: Settings
    lake: Lake
    port: int

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def until(self, holds: Callable[[Samples], bool]) -> Samples:
        """Scrape until something holds, as a look may be a moment old."""
        end = time.monotonic() + 120
        while not holds(found := self.samples()):
            assert time.monotonic() < end, found
            time.sleep(0.1)
        return found

    def samples(self) -> Samples:
        status, text = self.get("/metrics")
        assert status == 200
        families = text_string_to_metric_families(text)
        return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def of(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    settings, lake = watched_project(tmp_path_factory.mktemp("watched"))
    with (settings.root / "headrace.toml").open("a") as file:
        file.write('[serve]\nmetrics = "0"\n')
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HEADRACE_")}
    environment = kept | {"PYTHONPATH": str(ROOT / "src"), "HEADRACE_MAINTENANCE_EVERY": "never"}
    words = [sys.executable, "-c", "from headrace.cli.main import main; main()", "-p", str(settings.root), "run"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stderr is not None
        first = process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/metrics", first)
        assert found, first + process.stderr.read()
        assert "Running the schedules" in process.stderr.readline()
        running = Watched(load(settings.root), lake, int(found[1]))
        running.until(lambda found: of(found, "headrace_schedulers") == 1)  # the first look was before it ran any
        yield running
    finally:
        process.terminate()
        process.wait(120)
    assert process.returncode == 0


def test_refreshes_are_counted_whoever_ran_them(watched: Watched) -> None:
    before = watched.samples()
    assert not [name for name, _ in before if name.startswith("headrace_refresh_")]  # what was before does not count
    watched.lake.base("s.a")
    watched.until(lambda found: of(found, "headrace_table_lag_seconds", table="s.b") > 0)
    refresh(watched.settings, watched.lake, "b", "c")
    with Catalog.open(watched.settings.catalog_url) as catalog:
        fail(catalog, "e")
        fail(catalog, "e")
    failures = "headrace_refresh_failures_total", frozenset({("table", "s.e"), ("code", "QUERY_FAILED")})
    after = watched.until(lambda found: found.get(failures) == 2)
    count = "headrace_refresh_duration_seconds_count"
    assert of(after, count, table="s.b", mode="DIFFERENTIAL") == 1
    assert of(after, "headrace_refresh_duration_seconds_bucket", table="s.b", mode="DIFFERENTIAL", le="+Inf") == 1
    assert of(after, "headrace_table_lag_seconds", table="s.b") == 0
    assert of(after, "headrace_table_lag_seconds", table="s.d") > 0


def test_tables_slots_and_the_catalog(watched: Watched) -> None:
    found = watched.until(lambda found: of(found, "headrace_schedulers") == 1)
    assert of(found, "headrace_catalog_up") == 1
    assert 0 < of(found, "headrace_catalog_latency_seconds") < 5
    assert of(found, "headrace_scheduler_slots") == 4
    assert (of(found, "headrace_scheduler_slots_used"), of(found, "headrace_scheduler_queued")) == (0, 0)
    assert of(found, "headrace_table_target_lag_seconds", table="s.d") == 60
    assert of(found, "headrace_table_rows", table="s.b") == 1
    assert (of(found, "headrace_table_failing", table="s.e"), of(found, "headrace_table_held", table="s.e")) == (1, 1)
    assert of(found, "headrace_table_status", table="s.e", status="NEW") == 1
    assert of(found, "headrace_table_status", table=f"s.`{ODD}`", status="ACTIVE") == 1


def test_every_sample_belongs_to_a_metric_of_the_list_with_its_labels(watched: Watched) -> None:
    _, text = watched.get("/metrics")
    known = {metric.name: metric for metric in METRICS}
    families = list(text_string_to_metric_families(text))
    assert [family.name for family in families] == list(known)
    for family in families:
        assert family.type == known[family.name].kind
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(known[family.name].labels)


def test_the_socket_answers_the_same(watched: Watched) -> None:
    connection = address.connect(str(watched.settings.root))
    assert connection is not None
    with connection:
        wire.send(connection, "GET", "/readyz?table=s.b")
        answer = wire.Answer(connection)
        assert (answer.status, answer.document()["ready"]) == (200, True)


def test_readiness_of_tables_includes_what_they_read(watched: Watched) -> None:
    status, text = watched.get("/readyz")
    document = json.loads(text)
    assert (status, document["ready"], document["pool"]["slots"]) == (200, True, 4)
    order = [table["name"] for table in document["tables"]]
    assert max(order.index("s.b"), order.index("s.c")) < order.index("s.d")
    (d,) = (table for table in document["tables"] if table["name"] == "s.d")
    assert (d["after"], d["ready"]) == (["s.b", "s.c"], True)
    status, text = watched.get("/readyz?table=s.e")
    failed = json.loads(text)
    assert (status, failed["ready"]) == (503, False)
    assert failed["checks"][-1] == {"name": "s.e", "ok": False, "detail": "not loaded yet"}
    assert watched.get("/readyz?table=s.nothing")[0] == 503
    assert watched.get("/healthz")[0] == 200


def test_a_loopback_address_answers_to_its_own_names_only(watched: Watched) -> None:
    assert watched.get("/metrics", Host="evil.example")[0] == 400
    assert watched.get("/healthz", Host=f"localhost:{watched.port}")[0] == 200


def test_a_port_that_is_taken_is_told(watched: Watched, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = ["-p", str(watched.settings.root), "--no-serve", "run", "--metrics", str(taken.getsockname()[1])]
        code = "from headrace.cli.main import main; main()"
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, env=environment)
    assert done.returncode == 1
    assert "[ADDRESS_UNAVAILABLE]" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9464", Address("127.0.0.1", 9464)),
        ("0.0.0.0:1", Address("0.0.0.0", 1)),
        ("[::1]:80", Address("::1", 80)),
        (" localhost:0 ", Address("localhost", 0)),
    ],
)
def test_addresses(text: str, expected: Address) -> None:
    assert parse_address(text, "--metrics") == expected


@pytest.mark.parametrize("text", ["", "x", "127.0.0.1", "127.0.0.1:99999", "a b:1", "::1:80", "http://x:1", "x:-1"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UserError, match="no address") as refused:
        parse_address(text, "--metrics")
    assert refused.value.code == "ADDRESS_INVALID"


# ---- what is written about them


def test_the_documentation_lists_every_metric() -> None:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    rows = {name: rest for name, rest in re.findall(r"^\| `(headrace_\w+)` \| (.*) \|$", text, re.MULTILINE)}
    expected = {
        metric.name + ("_total" if metric.kind == "counter" else ""): " | ".join(
            [metric.kind, ", ".join(f"`{label}`" for label in metric.labels), metric.text]
        )
        for metric in METRICS
    }
    assert rows == expected


def names_in(text: str) -> set[str]:
    return set(re.findall(r"\bheadrace_\w+", text))


@pytest.mark.parametrize("name", ["grafana-dashboard.json", "alerts.yml"])
def test_the_dashboard_and_the_alerts_name_metrics_that_exist(name: str) -> None:
    text = (ROOT / "docs" / "monitoring" / name).read_text(encoding="utf-8")
    suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}
    known = {metric.name + suffix for metric in METRICS for suffix in suffixes[metric.kind]}
    assert len(names_in(text)) >= 8
    assert not names_in(text) - known


def test_the_dashboard_is_one() -> None:
    dashboard = json.loads((ROOT / "docs" / "monitoring" / "grafana-dashboard.json").read_text(encoding="utf-8"))
    assert all(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
