"""Errors users can act on.

Every failure that leaves Headrace carries what happened, why, what to do, whether a retry can help, and a
stable code. Four stories are told apart, because each sends the reader somewhere else: a mistake in the input
(`UserError`), something that can never work (`Unsupported`), something the surroundings must repair
(`EnvironmentFault`), and a defect of ours (`InternalError`).
"""

from __future__ import annotations

from dataclasses import dataclass


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
        gutter, at, text = f"{self.line} | ", self.column - 1, self.text
        if len(text) > _SHOWN:
            # of a line that no terminal holds, what is around
            start = max(0, min(at - _SHOWN // 2, len(text) - _SHOWN))
            text = f"{'…' * (start > 0)}{text[start : start + _SHOWN]}{'…' * (start + _SHOWN < len(text))}"
            at += (start > 0) - start
        return f"{gutter}{text}\n{' ' * (len(gutter) + at)}^"


_SHOWN = 160
"""Characters shown of a line."""


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
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.detail = detail
        self.hint = hint
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
    """Something around Headrace is missing, broken or in the way: Java, a disk, a catalog, another writer."""


class InternalError(HeadraceError):
    """A defect of Headrace; nothing was published."""
