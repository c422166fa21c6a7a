"""Asks the project's server one thing that it answers at once."""

from __future__ import annotations

from headrace.serve.caller import address, wire


def ask(
    root: str,
    method: str,
    path: str,
    body: bytes = b"",
    kind: str = "application/json",
    *,
    seconds: float | None = None,
) -> tuple[int, dict[str, object]] | None:
    """Send a request; return HTTP's status and the document of the answer.

    Args:
        root: The project folder.
        method: HTTP's.
        path: With the query.
        body: What is sent.
        kind: Its media type.
        seconds: How long the server may take; None for ever.

    Returns:
        None when no server is up.

    Raises:
        OSError: It does not answer.
    """
    connection = address.connect(root)
    if connection is None:
        return None
    with connection:
        connection.settimeout(seconds)
        wire.send(connection, method, path, body, kind)
        answer = wire.Answer(connection)
        return answer.status, answer.document()
