"""The page, served by a real process and read as browsers read it; no Spark is started."""

from __future__ import annotations

import http.client
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
from catalog_kit.ready import ready_project
from click.testing import CliRunner
from kit.pages import Browser, opened, page_server
from kit.pipelines import Lake, define
from kit.waiting import until
from kit.watched import ODD, details, fail, refresh, watched_project

from headrace.catalog import Catalog
from headrace.cli.main import app
from headrace.config import Settings
from headrace.names import LAKE, TableName

ODD_URL = f"/tables/{quote(f's.`{ODD}`', safe='')}"
PAGES = ("/", "/graph", "/runs", "/sources", "/deployments", "/events", "/tables/s.b", ODD_URL, "/explain/s.b")


@dataclass
class Shown:
    """A project and its page."""

    settings: Settings
    lake: Lake
    url: str
    browser: Browser
    process: subprocess.Popen[str]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    settings, lake = watched_project(tmp_path_factory.mktemp("page"))
    with page_server(settings) as (url, process):
        yield Shown(settings, lake, url, opened(url), process)


# ---- who may look


def test_nobody_else_may_look(shown: Shown) -> None:
    stranger = Browser(shown.browser.port)
    for path in (*PAGES, "/live", "/?token=wrong", "/?token="):
        answer = stranger.ask(path)
        assert answer.status == 403, path
        assert "s.b" not in answer.text
    assert stranger.ask("/static/page.css").status == 200
    stranger.cookies[next(iter(shown.browser.cookies))] = "guessed"
    assert stranger.ask("/").status == 403


def test_the_token_does_not_stay_in_the_url_and_the_cookie_is_for_this_page_alone(shown: Shown) -> None:
    again = Browser(shown.browser.port)
    answer = again.ask(f"/graph?focus=s.b&{shown.url.partition('?')[2]}")
    assert (answer.status, answer.headers["location"]) == (303, "/graph?focus=s.b")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert again.ask("/").status == 200


def test_another_name_that_leads_here_is_refused(shown: Shown) -> None:
    assert shown.browser.ask("/", Host="evil.example").status == 421
    assert shown.browser.ask("/", Host=f"localhost:{shown.browser.port}").status == 200


@pytest.mark.parametrize("host", ["[", "x/static/", "a:b", "localhost:99999", "x@localhost", "[::1"])
def test_hosts_that_are_none_are_refused(shown: Shown, host: str) -> None:
    assert shown.browser.ask("/", Host=host).status == 400


def test_queries_that_are_no_text_are_refused(shown: Shown) -> None:
    with socket.create_connection(("127.0.0.1", shown.browser.port), timeout=60) as connection:
        connection.sendall(b"GET /?q=\xff HTTP/1.0\r\nHost: localhost\r\n\r\n")
        assert connection.makefile("rb").readline().split()[1] == b"400"


@pytest.mark.parametrize("path", ["/", "/static/page.js", "/nothing"])
def test_browsers_are_told_to_load_nothing_from_elsewhere(shown: Shown, path: str) -> None:
    headers = shown.browser.ask(path).headers
    assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert (headers["referrer-policy"], headers["x-content-type-options"]) == ("no-referrer", "nosniff")


def test_buttons_are_off(shown: Shown) -> None:
    assert not [form for form in shown.browser.ask("/tables/s.b").page().forms if form[""] == "/actions"]
    assert shown.browser.ask("/actions", {"verb": "pause", "name": "s.b"}).status == 403


def test_limits(shown: Shown) -> None:
    assert shown.browser.ask("/?q=" + "x" * 9000).status == 414
    assert shown.browser.ask("/actions", {"name": "x" * 100_000}).status == 413
    for query in ("limit=99999999999999", "limit=-1", "limit=x", "page=999", "depth=99"):
        for path in ("/", "/events", "/graph", "/tables/s.b"):
            assert shown.browser.ask(f"{path}?{query}").status == 200, (path, query)
    for path in ("/tables/s.nothing", "/nothing", "/runs?run=999999", "/static/../site.py", "/static/%2e%2e/site.py"):
        assert shown.browser.ask(path).status == 404, path


# ---- what is shown


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_well_formed_and_can_be_used_without_seeing_it(shown: Shown, path: str) -> None:
    page = shown.browser.ask(path).page()
    assert not page.faults
    assert page.titles[0].endswith("· shop · Headrace")
    for link in set(page.links):
        assert link.startswith(("/", "#")), link


def test_every_link_leads_somewhere(shown: Shown) -> None:
    links = {link for path in PAGES for link in shown.browser.ask(path).page().links if link.startswith("/")}
    assert ODD_URL in links
    assert {link: s for link in links if (s := shown.browser.ask(link).status) != 200} == {}


@pytest.mark.parametrize("path", [*PAGES, f"/?q={quote(ODD)}", f"/graph?q={quote(ODD)}", f"/events?q={quote(ODD)}"])
def test_names_and_messages_are_text(shown: Shown, path: str) -> None:
    html = shown.browser.ask(path).text
    for text in (ODD, "Hello <b>", "by <zero>"):
        assert text not in html


def test_the_overview_shows_health_and_what_helps(shown: Shown) -> None:
    text = shown.browser.ask("/").page().text
    assert "5 stream tables" in text
    assert "1 failed or stopped" in text
    assert "s.e [QUERY_FAILED] Division by <zero>." in text
    assert "No process runs schedules" in text
    assert f"s.`{ODD}` held up" in text
    found = shown.browser.ask("/?state=bad").page().text
    assert "1 of 5" in found
    assert "2 of 5" not in found
    assert "1 of 5" in shown.browser.ask(f"/?q={quote(ODD)}").page().text


def test_the_graph_shows_who_reads_whom(shown: Shown) -> None:
    page = shown.browser.ask("/graph").page()
    for words in ("s.d reads s.b: k", "s.b reads s.a: k", "source table", "Published together: group s.d"):
        assert words in page.text
    near = shown.browser.ask("/graph?focus=s.d&depth=1").page().text
    assert "s.d reads s.b" in near
    assert "s.b reads s.a" not in near
    assert "No name contains" in shown.browser.ask("/graph?q=zzz").page().text


def test_a_table_shows_its_definition_history_and_keys(shown: Shown) -> None:
    page = shown.browser.ask("/tables/s.b").page()
    assert page.tags["svg"] == 3
    for words in (
        "CREATE STREAM TABLE s.b",
        "SELECT k FROM s.a",
        "DIFFERENTIAL",
        "Read by s.d",
        "10 minutes",
        "bigint",
    ):
        assert words in page.text, words
    failed = shown.browser.ask("/tables/s.e").page().text
    assert "[QUERY_FAILED] Division by <zero>." in failed
    assert "Not refreshed by schedule: paused" in failed


def test_events_are_sentences_and_can_be_filtered(shown: Shown) -> None:
    assert "notice Hello <b>" in shown.browser.ask("/events").page().text
    assert "None in the last week." in shown.browser.ask("/events?q=zzz").page().text
    assert "None in the last week." in shown.browser.ask("/events?kind=promoted").page().text


def test_a_run_shows_its_critical_path(shown: Shown) -> None:
    text = shown.browser.ask("/runs").page().text
    assert "5 refreshes in" in text
    assert "Critical path: s.e" in text


def test_explaining_needs_a_server(shown: Shown) -> None:
    assert "headrace explain s.b" in shown.browser.ask("/explain/s.b").page().text


def test_looking_starts_no_spark(shown: Shown) -> None:
    below = Path(f"/proc/{shown.process.pid}/task/{shown.process.pid}/children")
    if below.exists():
        assert below.read_text() == ""


# ---- live

listeners: list[http.client.HTTPConnection] = []


def test_what_happens_is_shown_without_asking(shown: Shown) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", shown.browser.port, timeout=120)
    cookie = "; ".join(f"{name}={value}" for name, value in shown.browser.cookies.items())
    connection.request("GET", "/live", headers={"Cookie": cookie})
    answer = connection.getresponse()
    assert answer.headers["content-type"].startswith("text/event-stream")
    told = threading.Event()

    def listen() -> None:
        for line in answer:
            if line.strip() == b"event: changed":
                told.set()
                return

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    before = shown.browser.ask("/tables/s.b").page().text
    shown.lake.base("s.a")
    refresh(shown.settings, shown.lake, "b")
    assert told.wait(120)
    until(lambda: shown.browser.ask("/tables/s.b").page().text != before)
    listeners.append(connection)  # as a browser that is open while the server ends


# ---- buttons, passwords, proxies


def test_buttons_do_what_they_say_to_whom_the_page_was_given(tmp_path: Path) -> None:
    settings, _ = watched_project(tmp_path)
    with page_server(settings, "--actions") as (url, _process):
        browser = opened(url)
        forms = {form["verb"]: form for form in browser.ask("/tables/s.b").page().forms if form[""] == "/actions"}
        assert set(forms) == {"refresh", "pause", "resume"}
        pause = {name: value for name, value in forms["pause"].items() if name}
        assert browser.ask("/actions", {**pause, "csrf": "guessed"}).status == 403
        assert browser.ask("/actions", {**pause, "csrf": ""}).status == 403
        assert browser.ask("/actions", pause, Sec_Fetch_Site="cross-site").status == 403
        assert browser.ask("/actions", {**pause, "verb": "drop"}).status == 409
        other = opened(url)
        assert other.ask("/actions", pause).status == 403, "the token of another browser's page"
        with Catalog.open(settings.catalog_url) as catalog:
            assert {n.table for n, s in catalog.scheduling_states().items() if s.paused_at} == {"e", ODD}
            assert browser.ask("/actions", {**pause, "back": "//evil.example"}).headers["location"] == "/"
            until(lambda: "b" in {n.table for n, s in catalog.scheduling_states().items() if s.paused_at})
        until(lambda: "pause s.b done" in browser.ask("/").page().text)
        resume = {**pause, "verb": "resume", "name": "s.nothing"}
        assert browser.ask("/actions", resume).status == 303
        until(lambda: "resume s.nothing failed" in browser.ask("/").page().text)
        assert "[STREAM_TABLE_NOT_FOUND]" in browser.ask("/").page().text


def test_a_password_is_asked_for_and_cannot_be_tried_for_ever(tmp_path: Path) -> None:
    settings, _ = watched_project(tmp_path)
    with page_server(settings, "--password-env", "PAGE_PASSWORD", PAGE_PASSWORD="open sesame") as (url, _process):
        assert "token" not in url
        browser = Browser(int(url.rpartition(":")[2].strip("/")))
        asked = browser.ask("/graph")
        assert (asked.status, asked.headers["location"]) == (303, "/login?next=/graph")
        assert not browser.ask("/login?next=/graph").page().faults
        assert browser.ask("/login?next=/graph", {"password": "wrong"}).status == 401
        assert browser.ask("/live", Accept="text/event-stream").status == 401
        let_in = browser.ask("/login?next=/graph", {"password": "open sesame"})
        assert (let_in.status, let_in.headers["location"]) == (303, "/graph")
        assert browser.ask("/graph").status == 200
        elsewhere = browser.ask("/login?next=//evil.example", {"password": "open sesame"})
        assert elsewhere.headers["location"] == "/"
        stranger = Browser(browser.port)
        tried = [stranger.ask("/login", {"password": str(n)}).status for n in range(6)]
        assert tried[-1] == 429
        assert stranger.ask("/login", {"password": "open sesame"}).status == 429
        assert browser.ask("/").status == 200, "who is in stays in"


def test_a_proxy_says_who_it_is(tmp_path: Path) -> None:
    settings, _ = watched_project(tmp_path)
    options = ("--proxy-header", "X-User", "--proxy-from", "127.0.0.1", "--actions")
    with page_server(settings, *options) as (url, _process):
        browser = Browser(int(url.rpartition(":")[2].strip("/")))
        assert browser.ask("/").status == 401
        page = browser.ask("/tables/s.b", X_User="ada <b>").page()
        assert "ada <b>" in page.text
        pause = next({k: v for k, v in form.items() if k} for form in page.forms if form.get("verb") == "pause")
        assert browser.ask("/actions", pause, X_User="bob").status == 403, "the form was given to somebody else"
        assert browser.ask("/actions", pause, X_User="ada <b>").status == 303
        until(lambda: "by ada <b>" in browser.ask("/", X_User="bob").page().text)
    with page_server(settings, "--proxy-header", "X-User", "--proxy-from", "10.0.0.1") as (url, _process):
        stranger = Browser(int(url.rpartition(":")[2].strip("/")))
        assert stranger.ask("/", X_User="ada").status == 401
        assert stranger.ask("/", X_User="ada", X_Forwarded_For="10.0.0.1").status == 401


def test_a_proxy_on_this_machine_passes_on_the_name_that_was_asked_for(tmp_path: Path) -> None:
    settings, _ = watched_project(tmp_path)
    options = ("--proxy-header", "X-User", "--proxy-from", "127.0.0.1", "--host-name", "Tables.example.org")
    with page_server(settings, *options) as (url, _process):
        browser = Browser(int(url.rpartition(":")[2].strip("/")))
        for host in ("tables.example.org", "TABLES.example.org:443", "localhost"):
            assert browser.ask("/", X_User="ada", Host=host).status == 200
            assert browser.ask("/", Host=host).status == 401
        answer = browser.ask("/", X_User="ada", Host="evil.example")
        assert answer.status == 421, "a page whose name comes to lead here sends any header"
        assert "--host-name" in answer.text


# ---- large projects


def test_a_large_graph_opens_near_what_is_not_well_and_lists_have_pages(tmp_path: Path) -> None:
    settings, lake = watched_project(tmp_path)
    lake.base("s.base")
    with Catalog.open(settings.catalog_url) as catalog:
        chain = "; ".join(f"t{n}: {f't{n - 7}' if n > 6 else 'base'}" for n in range(140))
        define(catalog, chain, {"*": "10 minutes"})
        for table in catalog.stream_tables():
            if table.name.table.startswith("t"):
                given = details(f"SELECT k FROM {table.sources[0]}", table.sources)
                catalog.alter_stream_table(table.name, details=given)
        fail(catalog, "t70")
    with page_server(settings) as (url, _process):
        browser = opened(url)
        page = browser.ask("/graph").page()
        assert "of 147 tables, at most 2 steps from s.t70" in page.text
        assert "s.t77 reads s.t70" in page.text
        assert "s.t99 reads" not in page.text
        assert "s.t99 reads s.t92" in browser.ask("/graph?q=s.t99").page().text
        assert "11 names match" in browser.ask("/graph?q=s.t9").page().text
        first = browser.ask("/").page()
        assert "page 1 of 2" in first.text
        assert "page 2 of 2" in browser.ask("/?page=2").page().text


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (("--listen", "0.0.0.0:0"), 1, "[PAGE_NOT_CLOSED]"),
        (("--listen", "[::]:0", "--actions"), 1, "[PAGE_NOT_CLOSED]"),
        (("--proxy-header", "X-User"), 1, "[PAGE_NOT_CLOSED]"),
        (("--listen", "nowhere"), 1, "[ADDRESS_INVALID]"),
        (("--password-env", "NOBODY_SET_THIS"), 2, "NOBODY_SET_THIS"),
        (("--host-name", "https://tables.example.org"), 2, "write a name alone"),
    ],
)
def test_it_does_not_begin_where_it_would_be_open(
    tmp_path: Path, options: tuple[str, ...], status: int, words: str
) -> None:
    root = ready_project(tmp_path / "shop").root
    result = CliRunner().invoke(app, ["-p", str(root), "web", *options], prog_name="headrace")
    assert result.exit_code == status
    assert words in result.output


# ---- where columns come from


def test_column_lineage_is_shown_and_escaped(tmp_path: Path) -> None:
    settings, _ = watched_project(tmp_path)
    odd = "<b>k"
    with Catalog.open(settings.catalog_url) as catalog:
        for table in catalog.stream_tables():
            if table.name.table == "d":
                query = f"SELECT sum(k) AS k FROM s.b WHERE k > 1 UNION ALL SELECT k AS `{odd}` FROM s.`{ODD}`"
                new = details(query, table.sources[:1])
                new["sources"] = [*new["sources"], *details("", (TableName(LAKE, ("s",), ODD),))["sources"]]  # type: ignore[misc]
                catalog.alter_stream_table(table.name, details=new)
    with page_server(settings) as (url, _):
        browser = opened(url)
        graph, table = browser.ask("/graph").text, browser.ask("/tables/s.d").text
    assert "k → k (AGGREGATION); which rows: k (FILTER)" in graph
    assert '<span class="quiet">AGGREGATION</span>' in table
    assert "which rows" in table
    assert ODD not in graph + table
    assert "s.`&lt;script&gt;alert(1)`</a>.k" in table
