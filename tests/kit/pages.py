"""Pages as a browser reads them: a real `headrace web`, a client that keeps cookies, and what any page must be like."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from headrace.config import Settings

SOURCE = Path(__file__).parents[2] / "src"
VOID = frozenset({"meta", "link", "input", "br", "img", "hr"})


@dataclass
class Answer:
    """What a server answered."""

    status: int
    text: str
    headers: Mapping[str, str]

    def page(self) -> PageParser:
        assert self.status == 200, self.text[:500]
        return PageParser(self.text)


@dataclass
class Browser:
    """A client of one server."""

    port: int
    cookies: dict[str, str] = field(default_factory=dict)

    def ask(self, path: str, form: Mapping[str, str] | None = None, **headers: str) -> Answer:
        """Send one request; redirects are not followed."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        given = {"Host": f"127.0.0.1:{self.port}", "Accept": "text/html"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookies:
            given["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if form is not None:
            given["Content-Type"] = "application/x-www-form-urlencoded"
        body = None if form is None else urlencode(form)
        connection.request("GET" if form is None else "POST", path, body, given)
        answer = connection.getresponse()
        text = answer.read().decode()
        found = {name.lower(): value for name, value in answer.getheaders()}
        connection.close()
        if "set-cookie" in found:
            name, _, value = found["set-cookie"].partition(";")[0].partition("=")
            self.cookies[name] = value
        return Answer(answer.status, text, found)


class PageParser(HTMLParser):
    """A page, and what is wrong with it.

    Attributes:
        faults: Elements that are not closed, ids that are not unique, inputs and pictures without a name, inline styles
            and scripts (which the browser is told to refuse).
        text: What is shown.
        links: Where it leads.
        forms: The fields of each form, with its action as "".
    """

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.faults: list[str] = []
        self.words: list[str] = []
        self.links: list[str] = []
        self.titles: list[str] = []
        self.tags: Counter[str] = Counter()
        self.forms: list[dict[str, str]] = []
        self._open: list[str] = []
        self._ids: Counter[str] = Counter()
        self.feed(html)
        self.close()
        self.faults += [f"<{tag}> is not closed" for tag in self._open]
        self.faults += [f"id {name} occurs {count} times" for name, count in self._ids.items() if count > 1]
        if self.tags["h1"] != 1 or self.tags["main"] != 1:
            self.faults.append("a page has one h1 and one main")

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, given: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in given}
        self.tags[tag] += 1
        self._ids.update([attributes["id"]] if "id" in attributes else [])
        self.faults += [f"{tag} has {name}" for name in attributes if name == "style" or name.startswith("on")]
        if tag == "script" and not attributes.get("src", "").startswith("/static/"):
            self.faults.append("a script that is not ours")
        if tag == "a":
            self.links.append(attributes.get("href", ""))
        if tag == "form":
            self.forms.append({"": attributes.get("action", "")})
        if tag == "input" and self.forms:
            self.forms[-1][attributes.get("name", "")] = attributes.get("value", "")
        if tag in ("input", "select") and attributes.get("type") != "hidden" and "label" not in self._open:
            self.faults.append(f"{attributes.get('name')} has no label")
        if (tag == "svg" and "aria-label" not in attributes) or (tag == "img" and "alt" not in attributes):
            self.faults.append(f"{tag} has no name")
        if tag not in VOID and tag != "option":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag == "option":
            return
        if not self._open or self._open[-1] != tag:
            self.faults.append(f"</{tag}> closes {self._open[-1:]}")
        else:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open[-2:] == ["head", "title"]:
            self.titles.append(data)
        elif self._open and self._open[-1] != "script":
            self.words.append(data)


@contextmanager
def page_server(settings: Settings, *options: str, **environment: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run `headrace web` while the block lasts; yields its URL, and the process."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HEADRACE_")}
    words = [sys.executable, "-c", "from headrace.cli.main import main; main()", "-p", str(settings.root), "web"]
    process = subprocess.Popen(
        [*words, "--listen", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=kept | {"PYTHONPATH": str(SOURCE)} | environment,
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), process.stderr.read()
        yield url, process
    finally:
        process.terminate()
        _, errors = process.communicate(timeout=120)
        assert "Traceback" not in errors, errors
    assert process.returncode == 0


def opened(url: str) -> Browser:
    """Return a browser that has opened a URL with its token."""
    parts = urlsplit(url)
    assert parts.port is not None
    browser = Browser(parts.port)
    answer = browser.ask(f"{parts.path}?{parts.query}")
    assert (answer.status, answer.headers["location"]) == (303, "/")
    return browser
