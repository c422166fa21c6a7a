"""Translates exceptions of PySpark, Py4J and gRPC into Headrace errors.

The text shown is Spark's own sentence: never a plan, never a Java stack trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headrace.errors import HeadraceError, InternalError, Place, place_at
from headrace.spark.errors.error_kinds import FALLBACK, ErrorKind, error_kind
from headrace.spark.errors.python_errors import python_failure
from headrace.spark.interrupts import await_interrupt


@contextmanager
def translated(sql: str | None = None) -> Iterator[None]:
    """Turn what Spark raises within the block into a `HeadraceError`.

    Args:
        sql: The statement being run, for places.
    """
    try:
        yield
    except HeadraceError:
        raise
    except Exception as error:  # Py4J, gRPC and PySpark share no base class
        await_interrupt()
        raise translate(error, sql) from error


def translate(error: Exception, sql: str | None = None) -> HeadraceError:
    """Return the Headrace error for an exception of PySpark, Py4J or gRPC."""
    try:
        return _translated(error, sql)
    except Exception as silence:  # what an exception of Java's says is asked of a JVM that may be gone by now
        return _translated(silence, sql)


def _translated(error: Exception, sql: str | None) -> HeadraceError:
    texts = _texts(error)
    if "[STATE_DIVERGED]" in texts:
        return InternalError(
            "STATE_DIVERGED",
            "A change removes rows that the stream table does not have; nothing was published.",
            hint="Refresh it FULL, and please report this.",
        )
    if failure := python_failure(_whole(error)):
        return failure
    kind = error_kind(_condition(error), texts, {c.__name__ for c in type(error).__mro__})
    said, advice = _split_advice(_sentence(error, kind))
    message, detail = (kind.message, said if kind.detailed else None) if kind.message else (said, None)
    if kind is FALLBACK and isinstance(error, TypeError | AttributeError | KeyError | AssertionError):
        return InternalError("INTERNAL_ERROR", message, hint="Please report this.")
    hint = kind.hint if kind.message else advice or kind.hint
    return kind.family(kind.code, message, detail=detail, hint=hint, place=_place(error, sql), retryable=kind.retryable)


def _split_advice(sentence: str) -> tuple[str, str | None]:
    """Split a message of Spark's from the advice at its end, for the hint.

    That on names which do not exist is the same paragraph each time, on dropping, too, and says nothing.
    """
    match = re.search(r"\s(Did you mean|Use |Verify the spelling|Choose a different name|Correct the value)", sentence)
    if match is None:
        return sentence, None
    said, advice = sentence[: match.start()].strip(), sentence[match.start() :].strip()
    return said, None if advice.startswith("Verify the spelling") else advice


def _condition(error: BaseException) -> str | None:
    getter = getattr(error, "getCondition", None)
    return getter() if getter is not None else None


def _chain(error: BaseException) -> Iterator[Any]:
    """Yield the exception and its causes."""
    seen = set[int]()
    current: Any = error
    while current is not None and id(current) not in seen and len(seen) < 20:
        seen.add(id(current))
        yield current
        current = getattr(current, "cause", None) or getattr(current, "_cause", None) or current.__cause__


def _whole(error: BaseException) -> str:
    """Return everything that the exception and its causes say, traces of Java's included."""
    return "\n".join(f"{type(e).__name__}: {e}\n{getattr(e, '_stackTrace', None) or ''}" for e in _chain(error))


def _texts(error: BaseException) -> str:
    """Return the messages of an exception and its causes, for recognising it only."""
    texts = []
    for current in _chain(error):
        texts.append(f"{type(current).__name__}: {current}")
        trace = getattr(current, "_stackTrace", None) or ""
        texts += [line for line in trace.splitlines() if "Caused by" in line or "Exception:" in line]
    return "\n".join(texts)


def _sentence(error: Exception, kind: ErrorKind) -> str:
    """Return Spark's own sentence, without what surrounds it."""
    text = _raw(error)
    inner = re.findall(r"(?:Exception|Error): (\[[A-Z_.]+\].*)", text) if kind.message is None else []
    text = (inner or [text])[-1]
    text = re.split(r"\n\s*at |JVM stacktrace|\n\n|== SQL|;\n|Driver stacktrace|\n'|\n\+-", text, maxsplit=1)[0]
    text = re.sub(r"^(?:\[[A-Z_.0-9]+\]\s*)+", "", text.strip())
    text = re.sub(r"\s*SQLSTATE: \w+", "", text)
    text = re.sub(r"\s*\(line \d+, pos \d+\)", "", text)
    text = re.sub(r"If necessary set \S+ to \S+ to bypass this error\.?", "", text)
    text = re.sub(r"^(?:[\w$]+\.)+[\w$]*(?:Exception|Error):\s*", "", text)
    text = " ".join(text.split()).rstrip(";").strip()
    return text or type(error).__name__


def _raw(error: Exception) -> str:
    """Return the exception's own message.

    Py4J's repeats the whole Java trace, so its Java exception is asked.
    """
    getter = getattr(error, "getMessage", None)
    if callable(getter) and (message := getter()):
        return str(message)
    java = getattr(error, "java_exception", None)
    return str(java.getMessage() or java.getClass().getSimpleName()) if java is not None else str(error)


def _place(error: Exception, sql: str | None) -> Place | None:
    if sql is None:
        return None
    match = re.search(r"\(line (\d+), pos (\d+)\)", str(error))
    if match:
        line, column = int(match[1]), int(match[2])
        lines = sql.splitlines()
        return Place(line, column + 1, lines[line - 1]) if 0 < line <= len(lines) else None
    getter = getattr(error, "getQueryContext", None)
    for context in (getter() or ()) if getter is not None else ():
        start = context.startIndex()
        if 0 <= start < len(sql) and any(rest.startswith(context.fragment()[:20]) for rest in _rests(sql, start)):
            return place_at(sql, start)
    return None


def _rests(sql: str, start: int) -> tuple[str, str]:
    """Return the rest of a text from a position in characters, and in Java's UTF-16 units."""
    return sql[start:], sql.encode("utf-16-le")[2 * start :].decode("utf-16-le", "replace")
