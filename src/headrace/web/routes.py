"""Answers browsers: pages, their live parts, buttons."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

import headrace
from headrace.errors import HeadraceError
from headrace.web.access import Sessions
from headrace.web.doorkeeper import SESSION, form_of, is_own_form, remember
from headrace.web.live import Live
from headrace.web.pages.graph import graph
from headrace.web.pages.others import deployments, events, sources
from headrace.web.pages.overview import overview
from headrace.web.pages.page import Page, View
from headrace.web.pages.runs import runs
from headrace.web.pages.stream_table import stream_table
from headrace.web.rendering import render
from headrace.web.site import Site

PAGES: tuple[tuple[str, str, View], ...] = (
    ("/", "Overview", overview),
    ("/graph", "Graph", graph),
    ("/runs", "Runs", runs),
    ("/sources", "Sources and sinks", sources),
    ("/deployments", "Deployments", deployments),
    ("/events", "Events", events),
)
"""Pages of the navigation, in its order."""


def application(site: Site, sessions: Sessions) -> Starlette:
    """Return the application of the page, to be put behind a doorkeeper."""
    answers = _Answers(site, sessions)
    return Starlette(
        routes=[
            *(Route(path, answers.page(view)) for path, _, view in PAGES),
            Route("/tables/{name:path}", answers.page(stream_table)),
            Route("/explain/{name:path}", answers.explain),
            Route("/actions", answers.act, methods=["POST"]),
            Route("/live", Live(site).answer),
            Route("/login", answers.login, methods=["GET", "POST"]),
            Mount("/static", StaticFiles(packages=[("headrace.web", "static")])),
        ],
        exception_handlers={404: answers.nothing},
    )


class _Answers:
    """Answers that know the site.

    Args:
        site: The project.
        sessions: Who has proved himself.
    """

    def __init__(self, site: Site, sessions: Sessions) -> None:
        self._site = site
        self._sessions = sessions

    def page(self, view: View) -> Callable[[Request], Awaitable[Response]]:
        """Return what answers with a page."""

        async def answer(request: Request) -> Response:
            given = {**request.query_params, **request.path_params}
            return await asyncio.to_thread(self._rendered, request, view, given)

        return answer

    async def nothing(self, request: Request, _: Exception) -> Response:
        """Answer for a path that there is not."""
        if SESSION not in request.scope:
            return PlainTextResponse("Not found.", 404)
        page = Page("message.html", {"title": "Not found", "message": "There is no such page.", "remedy": None}, 404)
        return await asyncio.to_thread(self._html, request, page)

    async def explain(self, request: Request) -> Response:
        """Answer how a table's next refresh would run, where a server with Spark is up to ask."""
        from headrace.web.explaining import explained

        page = await asyncio.to_thread(explained, self._site, request.path_params["name"])
        return await asyncio.to_thread(self._html, request, page)

    async def act(self, request: Request) -> Response:
        """Do what a button says, if there are buttons and it was one of ours."""
        form = await form_of(request)
        if form is None:
            return PlainTextResponse("That is too much.", 413)
        if self._site.actions is None:
            return PlainTextResponse("Buttons are off; `headrace web --actions` turns them on.", 403)
        if not is_own_form(request, form):
            return PlainTextResponse("This form is not from this page; load the page again.", 403)
        session = request.scope[SESSION]
        action = self._site.actions.begin(form.get("verb", ""), form.get("name", ""), session.user)
        if action is None:
            return PlainTextResponse("There is no such button, or too much runs already.", 409)
        return RedirectResponse(_own_path(form.get("back", "/")), 303)

    async def login(self, request: Request) -> Response:
        """Ask for the password, or take it."""
        if self._sessions.rules.kind != "password":
            return RedirectResponse("/", 303)
        wanted = _own_path(request.query_params.get("next", "/"))
        wrong = False
        if request.method == "POST":
            form = await form_of(request)
            if form is None:
                return PlainTextResponse("That is too much.", 413)
            if not self._sessions.may_try():
                headers = {"retry-after": "60"}
                return PlainTextResponse("Too many wrong passwords; wait a minute.", 429, headers=headers)
            if (cookie := self._sessions.begin(form.get("password", ""))) is not None:
                answer = RedirectResponse(wanted, 303)
                remember(request, answer, cookie)
                return answer
            wrong = True
        text = render("login.html", {"wrong": wrong, "next": wanted, "project": self._site.settings.root.name})
        return HTMLResponse(text, 401 if wrong else 200)

    def _rendered(self, request: Request, view: View, given: Mapping[str, str]) -> Response:
        try:
            page = view(self._site, given)
        except HeadraceError as error:
            values = {"title": "It cannot be shown", "message": f"[{error.code}] {error.message}", "remedy": error.hint}
            page = Page("message.html", values, 503 if error.retryable else 500)
        return self._html(request, page)

    def _html(self, request: Request, page: Page) -> Response:
        return HTMLResponse(render(page.template, {**self._around(request), **page.values}), page.status)

    def _around(self, request: Request) -> dict[str, Any]:
        """Return what every page has."""
        session = request.scope[SESSION]
        site = self._site
        query = f"?{request.url.query}" if request.url.query else ""
        return {
            "pages": [(path, title) for path, title, _ in PAGES],
            "path": request.scope["path"],
            "here": request.scope["path"] + query,
            "project": site.settings.root.name,
            "version": headrace.__version__,
            "csrf": session.csrf,
            "user": session.user,
            "actions": site.actions is not None,
            "pressed": site.actions.recent()[:5] if site.actions is not None else [],
        }


def _own_path(given: str) -> str:
    """Return a path of this server that a browser is to be led to; `/` for anything else."""
    return given if given.startswith("/") and not given.startswith(("//", "/\\")) else "/"
