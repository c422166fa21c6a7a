"""Stream tables as Dagster assets: the graph is that of the project, and each asset is refreshed by a command."""

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import dagster as dg

PROJECT = os.environ.get("HEADRACE_PROJECT", "/srv/shop")
"""The project folder, where Dagster's process sees it."""


def headrace(*words: str) -> Any:
    """Run a command of Headrace in the project, and return what it answers."""
    done = subprocess.run(
        ["headrace", "--project", PROJECT, "--json", *words], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        error = json.loads(done.stderr.splitlines()[-1])["error"]
        raise dg.Failure(f"[{error['code']}] {error['message']}", allow_retries=error["retryable"])
    return json.loads(done.stdout)


def key(name: str) -> dg.AssetKey:
    """Return the asset of a table."""
    return dg.AssetKey(name.split("."))


def specs() -> list[dg.AssetSpec]:
    """Return an asset for each stream table, after those that it reads; sources are assets that somebody else makes."""
    graph = headrace("graph")
    nodes = sorted(graph["nodes"], key=lambda node: node["level"])
    reads: dict[str, list[str]] = {node["name"]: [] for node in nodes if not node["source"]}
    for edge in graph["edges"]:
        reads[edge["to"]].append(edge["from"])
    return [dg.AssetSpec(key(name), deps=[key(each) for each in of]) for name, of in reads.items()]


SPECS = specs()


@dg.multi_asset(specs=SPECS, can_subset=True, retry_policy=dg.RetryPolicy(max_retries=2, delay=60))
def stream_tables(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult]:
    """Refresh the chosen stream tables; Headrace knows the order and publishes groups together."""
    names = [".".join(spec.key.path) for spec in SPECS if spec.key in context.selected_asset_keys]
    results = {each["name"]: each for each in headrace("refresh", *names, "--wait", "5min")}
    for name in names:
        found = results.get(name, {"mode": "NO_CHANGE", "rows_inserted": 0, "rows_deleted": 0})
        shown = {field: found[field] for field in ("mode", "rows_inserted", "rows_deleted")}
        yield dg.MaterializeResult(asset_key=key(name), metadata=shown)


every_hour = dg.ScheduleDefinition(
    name="every_hour", target=dg.AssetSelection.assets(*[spec.key for spec in SPECS]), cron_schedule="0 * * * *"
)

defs = dg.Definitions(assets=[stream_tables], schedules=[every_hour])
