"""One error code with its message, cause and remedy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """A stable code of an error, and what its reader needs.

    Args:
        code: The code, such as `TABLE_NOT_FOUND`.
        message: What happened, one sentence.
        cause: Why it happens; empty where the message says it.
        remedy: What to do about it.
        retry: Whether the same call may succeed later without anybody changing anything; `sometimes` where the error
            itself says which.
        outage: Whether something that all tables need is away, which is no fault of the table that met it.
    """

    code: str
    message: str
    cause: str
    remedy: str
    retry: Literal["yes", "no", "sometimes"]
    outage: bool = False
