"""Describes a server's interface: its resources, and the OpenAPI document made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import headrace


@dataclass(frozen=True, slots=True)
class Resource:
    """Something to be read: the document that a command prints with `--json`.

    Args:
        path: Below `/v1/`.
        verb: The words of the command.
        summary: What it is.
        required: Parameters that become its arguments.
        repeated: A parameter that may be given several times and becomes arguments.
        options: Parameters that become options.
        media_type: Of the document.
    """

    path: str
    verb: tuple[str, ...]
    summary: str
    required: tuple[str, ...] = ()
    repeated: str | None = None
    options: tuple[str, ...] = ()
    media_type: str = "application/json"

    def words(self, given: Any) -> list[str] | None:
        """Return the command's words for query parameters; None when a required one is missing."""
        if any(not given.get(name) for name in self.required):
            return None
        words = [*self.verb, *(f"--{name}={given[name]}" for name in self.options if given.get(name))]
        values = [given[name] for name in self.required]
        values += given.getlist(self.repeated) if self.repeated else []
        return [*words, *(["--", *values] if values else [])]


RESOURCES: tuple[Resource, ...] = (
    Resource("status", ("status",), "Where stream tables stand.", repeated="name"),
    Resource("history", ("history",), "Past refreshes, newest first.", repeated="name", options=("limit",)),
    Resource("graph", ("graph",), "Which stream table reads what."),
    Resource("explain", ("explain",), "How a stream table or a query is refreshed.", ("target",), options=("mode",)),
    Resource("validate", ("validate",), "How a query would be maintained.", ("query",)),
    Resource("statements", ("show-create",), "Statements that make stream tables again.", repeated="name"),
    Resource("lineage", ("lineage",), "Which columns a stream table's columns come from.", ("name",)),
    Resource("functions", ("functions",), "The project's Python functions."),
    Resource("diamonds", ("diamonds",), "Stream tables that are refreshed together, and why."),
    Resource(
        "events", ("events",), "What happened, a JSON document a line.", (), None, ("limit",), "application/x-ndjson"
    ),
    Resource("sources", ("source", "list"), "Database sources."),
    Resource("sinks", ("sink", "list"), "Sinks."),
    Resource("keys", ("key", "list"), "Declared keys of sources."),
    Resource("deployments", ("deploy", "status"), "How far deployments are."),
    Resource("plan", ("run", "--dry-run"), "What a scheduler would refresh now."),
)
"""Every resource, each answered by the function of its command."""

_EVENTS = """What the command says, as server-sent events: `started` (`id`), `out` and `err` (`text`), `progress` where
asked for (`event` and what it is about), `stdin` (the command reads it: send it to `/v1/commands/{id}/stdin`), `local`
(only the caller's own process can run it), `exit` (`status`)."""


def description() -> dict[str, Any]:
    """Return the OpenAPI document."""
    paths: dict[str, Any] = {f"/v1/{resource.path}": {"get": _of(resource)} for resource in RESOURCES}
    paths["/v1/server"] = {"get": _operation("What this server is and does.")}
    paths["/v1/server/end"] = {
        "post": _operation("End, after the running commands or at once.", body={"now": {"type": "boolean"}})
    }
    paths["/v1/commands"] = {"post": _operation("Run a command.", body=_COMMAND, answers=_COMMAND_ANSWERS)}
    for path, (summary, kind) in _MONITORING.items():
        paths[path] = {"get": _operation(summary, answers={"200": {"description": "Well.", "content": {kind: {}}}})}
    number = [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}]
    missing = {"404": {"description": "There is no such command."}}
    paths["/v1/commands/{id}/cancel"] = {
        "post": _operation("Cancel a command: its Spark jobs and nothing else.", number, answers=missing)
    }
    paths["/v1/commands/{id}/stdin"] = {
        "post": _operation("Give a command what it reads from stdin, as it is.", number, answers=missing)
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "headrace serve", "version": headrace.__version__},
        "paths": dict(sorted(paths.items())),
    }


_COMMAND: dict[str, Any] = {
    "args": {"type": "array", "items": {"type": "string"}, "description": "The words after `headrace`."},
    "folder": {"type": "string", "description": "The working folder; the project's when left out."},
    "environment": {"type": "object", "additionalProperties": {"type": "string"}},
    "terminals": {"type": "object", "description": "Which of stdin, stdout, stderr are terminals."},
    "width": {"type": ["integer", "null"]},
    "height": {"type": ["integer", "null"]},
    "encoding": {"type": "string"},
    "progress": {"type": "boolean", "description": "Whether what happens is told as events, besides as text."},
    "root": {"type": "string", "description": "The project folder; refused when the server's is another."},
    "identity": {"type": "array", "items": {"type": "integer"}, "description": "Device and inode of it."},
    "version": {"type": "string", "description": "Of the caller's Headrace; so `python` and `prefix`."},
}

_COMMAND_ANSWERS: dict[str, Any] = {
    "200": {"description": _EVENTS, "content": {"text/event-stream": {"schema": {"type": "string"}}}},
    "409": {"description": "Versions, settings or variables are not the caller's; `ending`: the server ends for that."},
    "421": {"description": "This is the server of another project."},
}


_MONITORING = {
    "/v1/running": ("What `headrace run` refreshes just now, with the stage of each.", "application/json"),
    "/metrics": ("Metrics in Prometheus' text format.", "text/plain"),
    "/healthz": ("Whether this process answers.", "application/json"),
    "/readyz": ("Whether the project, or each `table`, is ready; 503 where not.", "application/json"),
}


def _of(resource: Resource) -> dict[str, Any]:
    names = [(name, True) for name in resource.required] + [(name, False) for name in resource.options]
    names += [(resource.repeated, False)] if resource.repeated else []
    parameters = [{"name": n, "in": "query", "required": r, "schema": {"type": "string"}} for n, r in names]
    answers = {
        "200": {"description": "As the command prints it with --json.", "content": {resource.media_type: {}}},
        "400": {"description": "A parameter is missing or wrong."},
        "422": {"description": "The command failed: `error` with `code`, `message`, `hint`."},
    }
    return _operation(resource.summary, parameters, answers=answers)


def _operation(
    summary: str,
    parameters: Sequence[Mapping[str, Any]] = (),
    *,
    body: Mapping[str, Any] | None = None,
    answers: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    operation: dict[str, Any] = {"summary": summary, "responses": {"200": {"description": "Done."}, **(answers or {})}}
    if parameters:
        operation["parameters"] = list(parameters)
    if body is not None:
        schema = {"type": "object", "properties": dict(body)}
        operation["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return operation
