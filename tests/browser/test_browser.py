"""The page in a real Chromium: its script, the keyboard, dark and light; screenshots for the documentation.

No part of `make test`: `make test-browser` finds or installs the browser. `HEADRACE_SCREENSHOTS=docs/images` keeps the
pictures.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.chromium import Tab, browser_tab
from kit.pages import page_server
from kit.pipelines import Lake
from kit.watched import refresh, watched_project

from headrace.config import Settings

PAGES = {
    "overview": "/",
    "graph": "/graph",
    "table": "/tables/s.b",
    "runs": "/runs",
    "sources": "/sources",
    "deployments": "/deployments",
    "events": "/events",
}


class Shown:
    """A project, its page, and a browser that has opened it."""

    def __init__(self, settings: Settings, lake: Lake, url: str, tab: Tab) -> None:
        self.settings, self.lake, self.tab = settings, lake, tab
        self.base = url.partition("/?")[0]
        tab.open(url)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("browser")
    settings, lake = watched_project(folder)
    program = os.environ["HEADRACE_CHROMIUM"]
    with page_server(settings, "--actions") as (url, _), browser_tab(program, folder / "profile") as tab:
        yield Shown(settings, lake, url, tab)


@pytest.mark.parametrize("name", PAGES)
def test_browsers_refuse_nothing_and_scripts_run(shown: Shown, name: str) -> None:
    shown.tab.open(shown.base + PAGES[name])
    shown.tab.until("document.getElementById('live').textContent === 'live'")
    assert shown.tab.complaints == []
    assert shown.tab.value("document.documentElement.scrollWidth <= window.innerWidth")


def test_what_changes_is_shown_and_the_focus_stays(shown: Shown) -> None:
    shown.tab.open(shown.base + "/tables/s.b")
    shown.tab.until("document.getElementById('live').textContent === 'live'")
    rows = "document.querySelectorAll('#part-history tbody tr').length"
    before = shown.tab.value(rows)
    shown.tab.value("document.querySelector('#part-state a').focus()")
    shown.lake.base("s.a")
    refresh(shown.settings, shown.lake, "b")
    shown.tab.until(f"{rows} === {before + 1}")
    assert shown.tab.value("document.activeElement.textContent") == "In the graph"


def test_the_keyboard_reaches_the_content_and_the_graph(shown: Shown) -> None:
    shown.tab.open(shown.base + "/graph")
    shown.tab.press("Tab", 9)
    assert shown.tab.value("document.activeElement.className") == "skip"
    shown.tab.press("Enter", 13)
    shown.tab.until("location.hash === '#main'")
    shown.tab.value("document.querySelector('.graph a[href=\"/tables/s.d\"]').focus()")
    shown.tab.until("document.getElementById('hint').textContent.includes('s.d reads s.b: k')")
    shown.tab.press("Enter", 13)
    shown.tab.until("location.pathname === '/tables/s.d'")


def test_dark_light_and_the_choice_that_stays(shown: Shown) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    shown.tab.scheme("dark")
    shown.tab.open(shown.base + "/")
    dark = shown.tab.value(ground)
    shown.tab.value("document.getElementById('theme').click()")
    assert shown.tab.value("document.getElementById('theme').textContent") == "Theme: light"
    light = shown.tab.value(ground)
    assert light != dark
    shown.tab.open(shown.base + "/events")
    assert shown.tab.value(ground) == light
    shown.tab.value("localStorage.clear()")
    shown.tab.scheme("light")


@pytest.mark.parametrize("width", [420, 1180])
def test_pictures(shown: Shown, tmp_path: Path, width: int) -> None:
    folder = Path(os.environ.get("HEADRACE_SCREENSHOTS", tmp_path)) if width > 1000 else tmp_path
    shown.tab.size(width, 760)
    for name in ("overview", "graph"):
        shown.tab.open(shown.base + PAGES[name])
        shown.tab.picture(folder / f"page-{name}.png")
        assert shown.tab.value("document.documentElement.scrollWidth <= window.innerWidth"), name
        assert (folder / f"page-{name}.png").stat().st_size > 5000
