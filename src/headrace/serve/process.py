"""Serves a project, in a process of its own or beside `headrace run`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.config import Settings
from headrace.errors import EnvironmentFault, HeadraceError
from headrace.events import Events
from headrace.serve.caller import address
from headrace.serve.caller.ask import ask
from headrace.serve.commands import Execute
from headrace.serve.freshness import Freshness
from headrace.serve.http_servers import quiet_config
from headrace.serve.listening import OneServer, OwnUserOnly
from headrace.serve.log import bound
from headrace.serve.monitoring.project_monitor import ProjectMonitor
from headrace.serve.routes import application
from headrace.serve.server import ServerState
from headrace.serve.warm_projects import SharedSpark, WarmProjects

if TYPE_CHECKING:
    import uvicorn
    from pyspark.sql import SparkSession

LONG_SECONDS = 1e6
LOOK_SECONDS = 0.25
"""Time between two looks whether the server is to end."""
LOG_SECONDS = 60.0
"""Time between two looks at the size of its log."""
END_SECONDS = 60.0
"""Time that a server has to end, once it was told to."""


def serve(
    settings: Settings,
    execute: Execute,
    environment: Mapping[str, str],
    *,
    kind: str,
    idle_minutes: float | None,
    listening: Callable[[], None] = lambda: None,
) -> bool:
    """Be the project's server until told to end.

    Args:
        settings: The project's.
        execute: Runs a command's words.
        environment: The variables of this process, as they were at first.
        kind: `background` or `foreground`.
        idle_minutes: After so many without work it ends; None: never.
        listening: Called once commands can reach it.

    Returns:
        False when another process is the project's server.

    Raises:
        EnvironmentFault: `SERVER_UNAVAILABLE`: the project folder cannot be written.
    """
    one = OneServer(settings.root)
    listener = _taken(one)
    if listener is None:
        return False
    projects = WarmProjects(settings, SharedSpark(settings))
    idle = None if idle_minutes is None else idle_minutes * 60
    state = ServerState(
        settings.root, projects, execute, Freshness(settings.root, environment), kind=kind, idle_seconds=idle
    )
    state.leave = one.leave
    try:
        one.announce(kind=kind)
        listening()
        threading.Thread(target=_start_spark, args=(projects.spark,), name="headrace-spark", daemon=True).start()
        log = Path(address.serve_folder(str(settings.root)), address.LOG) if kind == "background" else None
        asyncio.run(_until_ended(state, listener, log))
        state.cancel_commands()
    finally:
        one.leave()
        projects.close()
        projects.spark.stop()
    return True


@contextmanager
def serving_beside(
    settings: Settings,
    execute: Execute,
    environment: Mapping[str, str],
    running: Callable[[], SparkSession],
    monitor: ProjectMonitor,
) -> Iterator[bool]:
    """Serve while the block runs, from threads of this process; yields whether it does.

    A background server ends for that; one that somebody started by hand stays, and this process does not serve.

    Args:
        settings: The project's.
        execute: Runs a command's words.
        environment: The variables of this process, as they were at first.
        running: Returns this process's Spark session.
        monitor: Looks at the project, and hears what happens in this process.
    """
    one = OneServer(settings.root)
    try:
        listener = one.take()
        if listener is None and end_server(settings.root, kinds=("background",)):
            listener = one.take()
    except OSError:
        listener = None
    if listener is None:
        yield False
        return
    projects = WarmProjects(settings, SharedSpark(settings, running))
    freshness = Freshness(settings.root, environment)
    state = ServerState(settings.root, projects, execute, freshness, kind="run", idle_seconds=None, monitor=monitor)
    state.leave = one.leave
    one.announce(kind="run")
    thread = threading.Thread(
        target=lambda: asyncio.run(_until_ended(state, listener, None)), name="headrace-serve", daemon=True
    )
    thread.start()
    try:
        yield True
    finally:
        state.begin_to_end()
        state.cancel_commands()
        thread.join(5.0)
        projects.close()


def end_server(root: Path, *, kinds: tuple[str, ...] = ("background", "foreground")) -> bool:
    """End the project's server; return whether there was one of these kinds."""
    found = address.read_address(str(root))
    if found is None or found.get("kind") not in kinds:
        return False
    with suppress(OSError):
        if ask(str(root), "POST", "/v1/server/end", b'{"now": true}', seconds=END_SECONDS) is None:
            return False
    return _wait_for_lock(root)


def server_facts(root: Path) -> dict[str, object] | None:
    """Return what the project's server says of itself; None when none answers."""
    with suppress(OSError):
        found = ask(str(root), "GET", "/v1/server", seconds=30.0)
        return found[1] if found is not None and found[0] == 200 else None
    return None


def _wait_for_lock(root: Path) -> bool:
    import fcntl
    import time

    end = time.monotonic() + END_SECONDS
    while time.monotonic() < end:
        with (
            contextlib.suppress(OSError),
            open(os.path.join(address.serve_folder(str(root)), address.LOCK), "ab") as lock,
        ):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(0.05)
    return False


def _taken(one: OneServer) -> socket.socket | None:
    try:
        return one.take()
    except OSError as error:
        raise EnvironmentFault(
            "SERVER_UNAVAILABLE",
            "No server can be started for this project.",
            detail=str(error),
            hint="Make the project folder writable for you; commands run without a server, too.",
        ) from error


def _start_spark(spark: SharedSpark) -> None:
    with suppress(HeadraceError):  # told by the first command that needs it
        spark.root(Events())


async def _until_ended(state: ServerState, listener: socket.socket, log: Path | None) -> None:
    import uvicorn

    server = uvicorn.Server(quiet_config(application(state), patience=1, protocol=OwnUserOnly))
    watching = asyncio.create_task(_watch(state, server, log))
    try:
        await server.serve(sockets=[listener])
    finally:
        watching.cancel()


async def _watch(state: ServerState, server: uvicorn.Server, log: Path | None) -> None:
    """End the server when it is idle or told to, after the commands that run."""
    looks = 0
    while not state.ending.is_set() and not server.should_exit:
        await asyncio.sleep(LOOK_SECONDS)
        looks += 1
        if log is not None and looks % int(LOG_SECONDS / LOOK_SECONDS) == 0:
            bound(log)
        if state.is_idle() or not state.root.exists():
            break
    state.begin_to_end()  # the next server need not wait for commands of this one
    if not server.should_exit:
        await asyncio.to_thread(state.wait_for_commands, LONG_SECONDS)
        server.should_exit = True
