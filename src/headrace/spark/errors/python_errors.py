"""Finds what a Python function said when it failed in one of Spark's workers.

Spark hands the worker's whole traceback on, within the message of an exception of Java's, within others.
"""

from __future__ import annotations

import re

from headrace.errors import HeadraceError, UserError

_BEGIN = "Traceback (most recent call last):"
_WORKER = re.compile(r"PythonException|from the Python worker")
_FRAME = re.compile(r'  File "([^"]+)", line (\d+), in (.+)')


def python_failure(whole: str) -> HeadraceError | None:
    """Return the error for a function that failed; None when none did.

    Args:
        whole: Everything that the exception and its causes say.
    """
    if _BEGIN not in whole or not _WORKER.search(whole):
        return None
    traceback = re.split(r"\n\s*at |\n\n\tat |Driver stacktrace", whole[whole.index(_BEGIN) :], maxsplit=1)[0]
    last = traceback.split(_BEGIN)[-1].splitlines()
    said = next((line.strip() for line in last if line.strip() and not line.startswith(" ")), "no reason is given")
    frames = [match.groups() for line in last if (match := _FRAME.match(line))]
    where = "{}, line {}, in {}".format(*frames[-1]) if frames else None
    return UserError(
        "FUNCTION_FAILED",
        f"A Python function failed: {said}",
        detail=where,
        hint="Let the function answer None where it has no answer, or correct the data.",
    )
