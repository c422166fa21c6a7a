"""Sources, sinks and deployments as the page shows them, and refreshes that a server of the project tells about."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest
from catalog_kit.samples import create, lake
from kit.pages import Browser, PageParser, opened, page_server
from kit.waiting import until
from kit.watched import watched_project

from headrace.catalog import Catalog, Green, Mirror, Publication, SourceMove, SourceStatus
from headrace.definitions.details import Details, to_json
from headrace.deploy.blue_settings import settings_of
from headrace.errors import EnvironmentFault
from headrace.events import RefreshFailed, RefreshFinished, RefreshGivenUp, RefreshStarted, StageFinished, StageStarted
from headrace.observability.running_refreshes import RunningRefreshes
from headrace.semantics import Semantics
from headrace.sources.postgres.setup.open_capture import options_of

NOW = dt.datetime.now(dt.UTC)
NOWHERE = "postgresql://nobody@127.0.0.1:9/shop"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    settings, _ = watched_project(tmp_path_factory.mktemp("around"))
    with Catalog.open(settings.catalog_url) as catalog:
        _add_sources(catalog)
        _add_sink(catalog)
        _add_deployments(catalog)
    with page_server(settings, "--actions") as (url, _process):
        yield opened(url)


def _add_sources(catalog: Catalog) -> None:
    for name in ("bank", "world", "gone"):
        mirror = Mirror(lake(f"{name}.items"), lake(f"_headrace.{name}_items_log"))
        catalog.create_source(name, "postgres", options_of(name, NOWHERE, {"items": ("public", "items")}), [mirror])
        catalog.publish(Publication(sources=(SourceMove(name, None, {"lsn": 1}, ()),)))
    catalog.set_source_status("gone", SourceStatus.STOPPED, "SLOT_LOST", "The slot <is> gone.")
    catalog.set_source_status("world", SourceStatus.PAUSED)
    fault = EnvironmentFault("SOURCE_UNREACHABLE", "No <answer>.", hint="Wait & see.", retryable=True)
    catalog.note_source_failure("bank", fault)


def _add_sink(catalog: Catalog) -> None:
    options = {"url": NOWHERE, "table": ["public", "out"], "key": [], "placement": "auto", "on_conflict": "refuse"}
    catalog.create_sink("out", "5f0c", "postgres", lake("s.b"), options, None)
    fault = EnvironmentFault("SINK_UNREACHABLE", "It is <away>.", hint="Wait.", retryable=True)
    catalog.note_sink_failure("out", fault, lambda _: NOW, stops=False)


def _add_deployments(catalog: Catalog) -> None:
    for name, original, promoted in (("s__green.b", "s.b", None), ("s__old.c", "s.c", NOW)):
        deployment = name.partition("__")[2].partition(".")[0]
        of = Details("SELECT 1 AS k", (), Semantics(), (), (), {}, (), None, deployment=deployment)
        create(catalog, lake(name), lake("s.a"), details=to_json(of))
        blue = settings_of(catalog.stream_table(lake(original)))
        keep = None if promoted is None else promoted + dt.timedelta(hours=24)
        green = Green(lake(name), deployment, lake(original), blue, NOW, promoted_at=promoted, keep_until=keep)
        catalog.publish(Publication(greens=(green,)))


def page(browser: Browser, path: str) -> PageParser:
    found = browser.ask(path).page()
    assert not found.faults
    return found


def test_sources_and_sinks(browser: Browser) -> None:
    page(browser, "/sources")
    until(lambda: "Its server does not answer." in page(browser, "/sources").text)
    text = page(browser, "/sources").text
    for words in (
        "bank new",
        "[SOURCE_UNREACHABLE] No <answer>.",
        "Wait & see.",
        "gone stopped",
        "The slot <is> gone.",
        "world paused",
        "bank.items",
        "into postgres",
        "[SINK_UNREACHABLE] It is <away>.",
    ):
        assert words in text, words


def test_deployments_can_be_promoted_and_taken_back(browser: Browser) -> None:
    found = page(browser, "/deployments")
    assert "1 tables, 0 converged" in found.text
    assert "can be taken back until" in found.text
    buttons = {(form["verb"], form["name"]) for form in found.forms}
    assert buttons == {("promote", "green"), ("rollback", "old")}


def test_a_refresh_is_told_with_its_stage_until_it_ends() -> None:
    running = RunningRefreshes()
    running.note(StageStarted("s.x", "compute"))  # of one that began before anybody listened
    running.note(RefreshStarted("s.b", "FULL", "FIRST_LOAD"))
    running.note(RefreshStarted("s.c", "DIFFERENTIAL", None))
    running.note(StageStarted("s.b", "compute"))
    running.note(StageFinished("s.b", "compute", 1.0))
    running.note(StageStarted("s.b", "apply"))
    (b, c) = (each.as_dict() for each in running.all())
    assert b.keys() == {"table", "mode", "since", "stage", "done"}
    assert (b["table"], b["mode"], b["stage"], b["done"]) == ("s.b", "FULL", "apply", 1)
    assert (c["table"], c["stage"]) == ("s.c", None)
    running.note(RefreshFinished("s.b", "FULL", 1, 0, 2.0))
    running.note(RefreshFailed("s.c", "CANCELLED", "It was cancelled."))
    assert running.all() == []
    running.note(RefreshStarted("s.b", "FULL", None))
    running.note(RefreshGivenUp("s.b"))  # another one of its group failed
    assert running.all() == []
