"""Runs the commands of buttons, by the project's server, in one thread each."""

from __future__ import annotations

import datetime as dt
import json
import os
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from headrace.api.facade import Headrace
from headrace.errors import HeadraceError
from headrace.serve.caller import address, start_server, wire

VERBS: Mapping[str, tuple[str, ...]] = {
    "refresh": ("refresh",),
    "pause": (),
    "resume": (),
    "promote": ("deploy", "promote", "--all"),
    "rollback": ("deploy", "rollback", "--all"),
}
"""The only commands there are buttons for, each followed by one name; () for those that need no server."""

KEPT = 20
TRIES = 3
MOST_RUNNING = 4
"""Actions that run at once; more are refused."""


@dataclass(slots=True)
class Action:
    """Something that somebody pressed.

    Args:
        verb: One of `VERBS`.
        name: The stream table, or the deployment.
        user: Whom the proxy named; "" otherwise.
        at: When.
        state: How it is going.
        message: What came of it.
    """

    verb: str
    name: str
    user: str
    at: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))
    state: Literal["running", "done", "failed"] = "running"
    message: str = ""


class Actions:
    """Runs what was pressed, and remembers what came of it.

    Args:
        root: The project folder.
        project: The project, open.
    """

    def __init__(self, root: Path, project: Headrace) -> None:
        self._root = str(root.resolve())
        self._project = project
        self._kept: deque[Action] = deque(maxlen=KEPT)
        self._lock = threading.Lock()

    def recent(self) -> list[Action]:
        """Return the last ones, newest first."""
        with self._lock:
            return list(reversed(self._kept))

    def begin(self, verb: str, name: str, user: str) -> Action | None:
        """Run a command; None where too many run, or there is no such button."""
        with self._lock:
            if verb not in VERBS or sum(action.state == "running" for action in self._kept) >= MOST_RUNNING:
                return None
            action = Action(verb, name, user)
            self._kept.append(action)
        threading.Thread(target=self._run, args=(action,), name="headrace-action", daemon=True).start()
        return action

    def _run(self, action: Action) -> None:
        try:
            if VERBS[action.verb]:
                status, message = self._command(_words(action))
            else:
                status, message = 0, self._decide(action)
        except HeadraceError as error:
            status, message = 1, f"[{error.code}] {error.message}"
        except OSError as error:
            status, message = 1, f"The project's server did not answer: {error}."
        except Exception as error:  # or it would seem to run for ever
            status, message = 1, f"It broke: {error!r}."
        action.message = message
        action.state = "done" if status == 0 else "failed"

    def _decide(self, action: Action) -> str:
        """Pause or resume, which is a row of the catalog."""
        decide = self._project.pause if action.verb == "pause" else self._project.resume
        return ", ".join(decide([action.name]))

    def _command(self, args: list[str]) -> tuple[int, str]:
        """Have the project's server run a command; return its exit status and error."""
        asked = {"args": args, "root": self._root, "folder": self._root, "environment": dict(os.environ)}
        message = "The project's server could not be started; run the command in a terminal."
        for _ in range(TRIES):
            connection = address.connect(self._root)
            if connection is None and start_server.start(self._root, lambda _: None):
                connection = address.connect(self._root)
            if connection is None:
                return 1, message
            with connection:
                wire.send(connection, "POST", "/v1/commands", json.dumps(asked).encode("ascii"))
                answer = wire.Answer(connection)
                if answer.status == 200:
                    return _followed(answer)
                refused = answer.document()
            why = str(refused.get("message", "The project's server refused.")).partition(";")[0].removesuffix(".")
            message = f"{why}; run the command in a terminal."
            if not refused.get("ending"):  # else it makes room for one that has this process's settings
                break
        return 1, message


def _followed(answer: wire.Answer) -> tuple[int, str]:
    """Return how a running command ends."""
    errors = ""
    for name, data in answer.events():
        if name == "err":
            errors += str(data.get("text", ""))
        elif name == "exit":
            return int(str(data["status"])), _told(errors)
    return 1, "The project's server ended before it had answered."


def _words(action: Action) -> list[str]:
    """Return a command's words, in which no name can be taken for an option."""
    *verb, last = VERBS[action.verb]
    if last == "--all":
        return [*verb, f"--all={action.name}", "--json"]
    return [*verb, last, "--json", "--", action.name]


def _told(errors: str) -> str:
    """Return the message of an error that was written as JSON."""
    for line in reversed(errors.splitlines()):
        try:
            error = json.loads(line)["error"]
        except (ValueError, KeyError, TypeError):
            continue
        return f"[{error.get('code')}] {error.get('message')} {error.get('hint') or ''}".strip()
    return ""
