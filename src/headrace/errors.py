"""Errors users can act on.

Every failure that leaves Headrace carries what happened, why, what to do, whether a retry can help, and a
stable code. Four stories are told apart, because each sends the reader somewhere else: a mistake in the input
(`UserError`), something that can never work (`Unsupported`), something the surroundings must repair
(`EnvironmentFault`), and a defect of ours (`InternalError`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_INVISIBLE = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""Control characters, which a terminal obeys, and those that show nothing or turn the line around."""

_LONGEST = 1_000
"""Characters of a message that are shown; ten times as many of what explains it."""


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a SQL text.

    Args:
        line: Line number, from 1.
        column: Column number within the line, from 1.
        text: The line itself, shown above the caret.
    """

    line: int
    column: int
    text: str

    def render(self) -> str:
        """Return the line with a caret under the position, for a terminal."""
        gutter, at, text = f"{self.line} | ", self.column - 1, _INVISIBLE.sub("\ufffd", self.text)
        if len(text) > _SHOWN:
            # of a line that no terminal holds, what is around
            start = max(0, min(at - _SHOWN // 2, len(text) - _SHOWN))
            text = f"{'…' * (start > 0)}{text[start : start + _SHOWN]}{'…' * (start + _SHOWN < len(text))}"
            at += (start > 0) - start
        return f"{gutter}{text}\n{' ' * (len(gutter) + at)}^"


_SHOWN = 160
"""Characters shown of a line."""


def _legible(text: str, longest: int) -> str:
    """Return a text fit for a terminal: invisible characters by number, long texts cut."""
    if len(text) > longest:
        text = f"{text[: longest // 2]} … {text[-longest // 2 :]}"
    return _INVISIBLE.sub(lambda found: f"U+{ord(found[0]):04X}", text)


def place_at(sql: str, offset: int) -> Place:
    """Turn a character offset (from 0) into a `Place`."""
    offset = max(0, min(offset, len(sql)))
    start = sql.rfind("\n", 0, offset) + 1
    end = sql.find("\n", offset)
    return Place(sql.count("\n", 0, offset) + 1, offset - start + 1, sql[start : end if end >= 0 else len(sql)])


class HeadraceError(Exception):
    """Base of every error Headrace raises on purpose.

    Args:
        code: Stable, upper-case identifier such as `TABLE_NOT_FOUND`; documented in docs/errors.md.
        message: What happened, one sentence.
        detail: Why, where that is known.
        hint: What to do about it.
        place: Where in the SQL text.
        retryable: True when the same call may succeed later without anybody changing anything.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        place: Place | None = None,
        retryable: bool = False,
    ) -> None:
        message = _legible(message, _LONGEST)
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.detail = detail and _legible(detail, 10 * _LONGEST)
        self.hint = hint and _legible(hint, 10 * _LONGEST)
        self.place = place
        self.retryable = retryable

    def __str__(self) -> str:
        parts = [f"[{self.code}] {self.message}"]
        if self.place is not None:
            parts.append(self.place.render())
        if self.detail:
            parts.append(self.detail)
        if self.hint:
            parts.append(f"Hint: {self.hint}")
        return "\n".join(parts)

    def as_dict(self) -> dict[str, object]:
        """Return the error as plain JSON values, for `--json`."""
        return {
            "code": self.code,
            "message": self.message,
            "detail": self.detail,
            "hint": self.hint,
            "line": self.place.line if self.place else None,
            "column": self.place.column if self.place else None,
            "retryable": self.retryable,
        }


class UserError(HeadraceError):
    """The input is wrong: a name, a query, an option."""


class Unsupported(HeadraceError):
    """A correct request that Headrace does not serve, now or ever; the detail says which."""


class EnvironmentFault(HeadraceError):
    """A fault outside of Headrace: Java, a disk, a catalog, another writer."""


class InternalError(HeadraceError):
    """A defect of Headrace; nothing was published."""
