"""Answers `/metrics`, `/healthz` and `/readyz`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from importlib.util import find_spec

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import headrace
from headrace.extras import package_missing
from headrace.observability.metrics.exposition import CONTENT_TYPE
from headrace.serve.monitoring.project_monitor import ProjectMonitor
from headrace.serve.monitoring.readiness import readiness

PATHS = ("/metrics", "/healthz", "/readyz")


def monitoring_routes(monitor: Callable[[], ProjectMonitor], *, owner: bool) -> list[Route]:
    """Return the routes.

    Args:
        monitor: Returns what looks at the project; called when first asked.
        owner: Whether this process runs schedules.
    """

    async def metrics(_: Request) -> Response:
        if find_spec("prometheus_client") is None:
            missing = package_missing("/metrics", "metrics", "prometheus_client")
            return Response(f"{missing.message} {missing.hint}\n", 501, media_type="text/plain")
        text = await asyncio.to_thread(lambda: monitor().metrics())
        return Response(text, headers={"content-type": CONTENT_TYPE, "cache-control": "no-store"})

    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok", "version": headrace.__version__, "pid": os.getpid()})

    async def ready(request: Request) -> Response:
        wanted = request.query_params.getlist("table")

        def look() -> tuple[bool, dict[str, object]]:
            of = monitor()
            state = of.state()
            return readiness(state, of.graph(state), owner, wanted)

        good, document = await asyncio.to_thread(look)
        return JSONResponse(document, 200 if good else 503)

    return [Route(path, answer) for path, answer in zip(PATHS, (metrics, health, ready), strict=True)]
