"""Has the project's server explain a table's next refresh, as compiling may need Spark."""

from __future__ import annotations

import json
from urllib.parse import quote

from headrace.serve.caller.ask import ask
from headrace.web.pages.page import Page
from headrace.web.site import Site


def explained(site: Site, name: str) -> Page:
    """Return the explanation, or where to get one."""
    values: dict[str, object] = {"name": name, "sections": [], "problem": None}
    try:
        root, path = str(site.settings.root.resolve()), f"/v1/explain?target={quote(name, safe='')}"
        found = ask(root, "GET", path, seconds=60.0)
    except OSError as error:
        values["problem"] = f"The project's server did not answer: {error}"
        return Page("explain.html", values)
    if found is None:
        values["problem"] = f"No server of the project is up to ask. In a terminal: headrace explain {name}"
        return Page("explain.html", values)
    status, document = found
    sections = document.get("sections")
    if status != 200 or not isinstance(sections, list):
        said = document.get("error")
        message = said.get("message") if isinstance(said, dict) else document.get("message")
        values["problem"] = str(message or json.dumps(document)[:500])
    else:
        values["sections"] = [(str(title), str(text)) for title, text in sections]
    return Page("explain.html", values)
