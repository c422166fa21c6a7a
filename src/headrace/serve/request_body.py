"""Reads what a request sends, up to a length."""

from __future__ import annotations

from starlette.requests import Request


class BodyTooLong(ValueError):
    """Raised where a request sends more than is taken."""


async def body_of(request: Request, most: int) -> bytes:
    """Return a request's body.

    Args:
        request: The request.
        most: Bytes that are taken.

    Raises:
        BodyTooLong: There are more.
    """
    parts: list[bytes] = []
    length = 0
    async for part in request.stream():
        parts.append(part)
        length += len(part)
        if length > most:
            raise BodyTooLong
    return b"".join(parts)
