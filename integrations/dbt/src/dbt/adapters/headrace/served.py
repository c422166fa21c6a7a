"""A project that its server has open: statements are command lines; no Spark starts here."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dbt.adapters.headrace.answers import Answer, Column, PlainAnswer, answer_of

import headrace
from headrace.errors import EnvironmentFault, HeadraceError, Place, UserError
from headrace.names import quote
from headrace.serve.caller import address, start_server, wire
from headrace.serve.caller.ask import ask
from headrace.serve.caller.call import request
from headrace.sql.reader.syntax.statement_cursor import string_literal

ALL = 1_000_000_000
"""Rows that are asked for: more than there are."""

_TEMPORARY = re.compile(r"\s*(?:/\*.*?\*/\s*)*create\s+or\s+replace\s+temporary\s+view\b", re.IGNORECASE | re.DOTALL)


def connect(root: Path, tell: Callable[[str], None]) -> ServedProject | None:
    """Return the project of a folder, by its server, which is started if need be.

    Args:
        root: The folder.
        tell: Is given lines for the user.

    Returns:
        None where there is no server and none can be started.

    Raises:
        HeadraceError: There is no project.
    """
    headrace.open(root).close()  # what is wrong with the project is said here, not in the server's log
    folder = str(root.resolve())
    connection = address.connect(folder)
    if connection is not None:
        connection.close()
    elif not start_server.start(folder, tell):
        return None
    return ServedProject(folder)


class ServedProject:
    """A project that its server has open.

    Every command has a Spark session of its own, so temporary views are said again before each statement.

    Args:
        root: The folder.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._here = threading.local()
        self._running: set[str] = set()

    def run(self, sql: str) -> Answer:
        """Run statements in a command `headrace sql`."""
        views: list[str] = self._here.__dict__.setdefault("views", [])
        text = ";\n".join((*views, sql))
        found = self._command("sql", "--json", "--limit", str(ALL), "--", text, sql=text)
        if _TEMPORARY.match(sql):
            views[:] = [*(view for view in views if view != sql), sql]
        result = found[-1]["result"] if found else None
        if isinstance(result, dict) and {"columns", "types", "rows"} <= result.keys():
            columns = [Column(*both) for both in zip(result["columns"], result["types"], strict=True)]
            return PlainAnswer(columns, [tuple(row) for row in result["rows"]])
        return answer_of(result)

    def verify(self, names: Sequence[str] | None) -> list[dict[str, Any]]:
        """Compare stream tables with their queries."""
        found = self._command("verify", "--json", *(names or ()))
        return found if isinstance(found, list) else [found]

    @contextmanager
    def local_rows(self, columns: Sequence[str], rows: Sequence[Sequence[str | None]]) -> Iterator[str]:
        """Write rows as VALUES."""
        names = ", ".join(quote(column) for column in columns)
        if not rows:
            nothing = ", ".join("CAST(NULL AS STRING)" for _ in columns)
            yield f"(SELECT * FROM VALUES ({nothing}) AS nothing({names}) WHERE false)"
            return
        values = (", ".join("NULL" if text is None else string_literal(text) for text in row) for row in rows)
        yield f"VALUES {', '.join(f'({row})' for row in values)} AS given({names})"

    def release(self) -> None:
        """Forget the temporary views of this thread's node."""
        self._here.__dict__.clear()

    def cancel(self) -> None:
        """Cancel the commands of this process."""
        for number in tuple(self._running):
            ask(self._root, "POST", f"/v1/commands/{number}/cancel", b"{}")

    def close(self) -> None:
        """Leave the server to itself: it ends when it was idle for long."""

    def _command(self, *args: str, sql: str = "") -> Any:
        """Run a command line; return the document that it prints.

        Raises:
            HeadraceError: As the command says; `SERVER_LOST` when the server ended; `CONFIG_INVALID` when
                it is one of another environment.
        """
        for _ in range(3):
            connection = address.connect(self._root)
            if connection is None and not start_server.start(self._root, lambda _: None):
                break
            if connection is None:
                continue
            with connection:
                wanted = json.dumps(request(self._root, list(args))).encode("ascii")
                try:
                    wire.send(connection, "POST", "/v1/commands", wanted)
                    answer = wire.Answer(connection)
                    refusal = {} if answer.status == 200 else answer.document()
                except OSError:  # it ended just now
                    continue
                if answer.status == 200:
                    return self._followed(answer, sql)
                if answer.status == 409 and not refusal.get("ending"):  # one that somebody started for more than this
                    raise _differs(str(refusal.get("message", "")))
                # it was started with other settings, and ends: the next one is started with these
        raise _lost()

    def _followed(self, answer: wire.Answer, sql: str) -> Any:
        said: dict[str, list[str]] = {"out": [], "err": []}
        number = ""
        try:
            for name, data in answer.events():
                if name == "started":
                    number = str(data["id"])
                    self._running.add(number)
                elif name == "exit":
                    if data["status"]:
                        raise _error("".join(said["err"]), sql)
                    return json.loads("".join(said["out"]) or "null")
                elif name in said:
                    said[name].append(str(data.get("text", "")))
            raise _lost()
        except OSError as error:
            raise _lost() from error
        finally:
            self._running.discard(number)


def _error(text: str, sql: str) -> HeadraceError:
    """Return the error that a command prints with `--json`."""
    try:
        found = next(json.loads(line)["error"] for line in reversed(text.splitlines()) if line.startswith('{"error"'))
    except StopIteration:
        return EnvironmentFault("SERVER_LOST", "The server's command failed.", detail=text.strip() or None)
    lines, number = sql.splitlines(), found.get("line")
    place = Place(number, found["column"], lines[number - 1]) if number and number <= len(lines) else None
    return UserError(
        found["code"],
        found["message"],
        detail=found.get("detail"),
        hint=found.get("hint"),
        place=place,
        retryable=bool(found.get("retryable")),
    )


def _differs(why: str) -> UserError:
    return UserError(
        "CONFIG_INVALID",
        "The project's server was started with another environment, so that dbt cannot use it.",
        detail=why.partition(";")[0] or None,
        hint="Run dbt in the environment of `headrace run`, or without `serve: true` in the profile.",
    )


def _lost() -> EnvironmentFault:
    return EnvironmentFault(
        "SERVER_LOST",
        "The project's server ended before it had answered.",
        hint="Run it again, or without `serve: true` in the profile. Its log is .headrace/serve/serve.log.",
        retryable=True,
    )
