"""Answers HTTP: commands as server-sent events, resources as JSON, the API's description."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from headrace.serve.caller import wire
from headrace.serve.caller.wire import encoded
from headrace.serve.commands import RunningCommand
from headrace.serve.monitoring.monitoring_routes import monitoring_routes
from headrace.serve.openapi import RESOURCES, Resource, description
from headrace.serve.request_body import BodyTooLong, body_of
from headrace.serve.server import ServerState

STATUS_OF_EXIT = {0: 200, 1: 422, 2: 400, 130: 499}
"""HTTP's status for a resource, by the exit status of its command."""


def application(state: ServerState) -> Starlette:
    """Return the application of a server."""
    answers = _Answers(state)
    return Starlette(
        routes=[
            Route("/openapi.json", answers.describe_api),
            Route("/v1/server", answers.server),
            Route("/v1/running", answers.running),
            Route("/v1/server/end", answers.end, methods=["POST"]),
            Route("/v1/commands", _Commands(state), methods=["POST"]),
            Route("/v1/commands/{id}/cancel", answers.cancel, methods=["POST"]),
            Route("/v1/commands/{id}/stdin", answers.stdin, methods=["POST"]),
            *monitoring_routes(state.monitor, owner=state.kind == "run"),
            *(Route(f"/v1/{resource.path}", answers.resource(resource)) for resource in RESOURCES),
        ]
    )


class _Answers:
    """Answers requests at once.

    Args:
        state: The server's.
    """

    def __init__(self, state: ServerState) -> None:
        self._state = state

    async def describe_api(self, _: Request) -> Response:
        """Answer the OpenAPI description."""
        return JSONResponse(description())

    async def server(self, _: Request) -> Response:
        """Answer what this server is."""
        return JSONResponse(self._state.describe())

    async def running(self, _: Request) -> Response:
        """Answer what `headrace run` refreshes just now."""
        return JSONResponse({"running": [each.as_dict() for each in self._state.monitor().refreshes.all()]})

    async def end(self, request: Request) -> Response:
        """End: after the running commands, or at once."""
        asked = await _document(request)
        if asked.get("now"):
            await asyncio.to_thread(self._state.cancel_commands)
        self._state.begin_to_end()
        return JSONResponse({"ending": True})

    async def cancel(self, request: Request) -> Response:
        """Cancel a running command."""
        command = self._state.found(request.path_params["id"])
        if command is None:
            return JSONResponse({"message": "There is no such command."}, 404)
        command.cancel()
        return JSONResponse({"cancelled": command.id})

    async def stdin(self, request: Request) -> Response:
        """Give a command what it reads from stdin."""
        command = self._state.found(request.path_params["id"])
        if command is None:
            return JSONResponse({"message": "There is no such command."}, 404)
        try:
            command.hand(await body_of(request, wire.MOST_BYTES))
        except BodyTooLong:
            return JSONResponse({"message": f"It is longer than {wire.MOST_BYTES} bytes."}, 413)
        return JSONResponse({"taken": command.id})

    def resource(self, resource: Resource) -> Callable[[Request], Awaitable[Response]]:
        """Return what answers a resource: the document that its command prints with `--json`."""

        async def answer(request: Request) -> Response:
            if (reason := self._state.staleness({})) is not None:
                return JSONResponse({"message": f"The server of this project {reason}."}, 409)
            words = resource.words(request.query_params)
            if words is None:
                return JSONResponse({"message": f"Give {', '.join(resource.required)}."}, 400)
            command = self._state.command({"args": ["--json", *words]})
            news = self._state.start(command)
            texts = {"out": "", "err": ""}
            status = None
            try:
                while status is None:
                    await news.wait()
                    news.clear()
                    for name, data in command.taken():
                        if name in texts:
                            texts[name] += data["text"]
                        elif name in ("exit", "local"):
                            status = int(data.get("status", 1))
            finally:
                command.forget()
                self._state.ended(command)
            text = texts["out"] if status == 0 or texts["out"] else (texts["err"].splitlines() or ["{}"])[-1]
            return Response(text, STATUS_OF_EXIT.get(status, 500), media_type=resource.media_type)

        return answer


class _Commands:
    """Runs commands, an ASGI application because a caller that leaves must be noticed.

    Args:
        state: The server's.
    """

    def __init__(self, state: ServerState) -> None:
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the command of a request and send its events."""
        asked = await _document(Request(scope, receive))
        refusal = self._refusal(asked)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        command = self._state.command(asked)
        news = self._state.start(command)
        leaving = asyncio.create_task(_left(receive))
        try:
            while not await self._send_news(command, news, leaving, send):
                pass
        finally:
            leaving.cancel()
            command.forget()
            self._state.ended(command)

    async def _send_news(
        self, command: RunningCommand, news: asyncio.Event, leaving: asyncio.Task[None], send: Send
    ) -> bool:
        """Send new events; return whether the command has ended or the caller has left."""
        coming = asyncio.create_task(news.wait())
        await asyncio.wait((coming, leaving), return_when=asyncio.FIRST_COMPLETED)
        coming.cancel()
        if leaving.done():
            return True
        news.clear()
        for name, data in command.taken():
            last = name in ("exit", "local")
            await send({"type": "http.response.body", "body": encoded(name, data), "more_body": not last})
            if last:
                return True
        return False

    def _refusal(self, asked: Mapping[str, Any]) -> Response | None:
        if self._state.is_other_project(asked):
            return JSONResponse({"message": "This is the server of another project."}, 421)
        if self._state.ending.is_set():
            return JSONResponse({"message": "The server of this project is ending.", "ending": True}, 409)
        if reason := self._state.staleness(asked):
            ending = self._state.kind == "background"
            if ending:
                self._state.begin_to_end()
            after = "starting another." if ending else "this command runs by itself."
            return JSONResponse({"message": f"The server of this project {reason}; {after}", "ending": ending}, 409)
        return None


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _document(request: Request) -> dict[str, Any]:
    try:
        found = json.loads(await body_of(request, wire.MOST_BYTES) or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
