"""Declares Python functions: the decorator, and the record of a declared function."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from headrace.errors import UserError
from headrace.functions.fingerprint import fingerprint

F = TypeVar("F", bound=Callable[..., Any])

MARK = "__headrace_function__"
"""Attribute with what the decorator was told; plain values, because the function travels to Spark's workers with it."""

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Function:
    """A Python function that queries may call.

    Args:
        name: Its name in SQL, in lower case.
        call: The function; takes one argument for each of the call, None for NULL.
        returns: The type it returns, as Spark SQL writes it (`string`, `decimal(12,2)`, `array<int>`).
        deterministic: Whether equal arguments always give equal results.
        fingerprint: Another one when the body, what it refers to, or the type changes; see `fingerprint`.
    """

    name: str
    call: Callable[..., Any]
    returns: str
    deterministic: bool
    fingerprint: str


def function(*, returns: str, name: str | None = None, deterministic: bool = True) -> Callable[[F], F]:
    """Declare a function of the project's `functions.py`, to be called in queries by its name.

    The function itself stays what it is: it can be called and tested as any other.

    Args:
        returns: The type it returns, as Spark SQL writes it: `string`, `decimal(12,2)`, `struct<a:int,b:string>`; one
            of PySpark's types will do, too. A value of another type becomes NULL, as in PySpark.
        name: Its name in SQL; its own when None.
        deterministic: Whether equal arguments always give equal results. Queries that call one for which this is not
            so are recomputed.

    Raises:
        UserError: `FUNCTION_INVALID`.
    """

    def declared(call: F) -> F:
        told = {"returns": type_text(returns), "name": name, "deterministic": bool(deterministic)}
        try:
            setattr(call, MARK, told)
        except (AttributeError, TypeError):
            raise invalid(name or repr(call), "It takes no attributes: wrap it in a function of your own.") from None
        return call

    return declared


def declare(name: str, call: Callable[..., Any], returns: Any, deterministic: bool) -> Function:
    """Return a function under its name.

    Raises:
        UserError: `FUNCTION_INVALID`.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise invalid(str(name), "A name in SQL has letters, digits and underscores, and begins with no digit.")
    if not callable(call):
        raise invalid(name, "It cannot be called.")
    text = type_text(returns)
    return Function(name.lower(), call, text, deterministic, fingerprint(call, text, deterministic))


def type_text(returns: Any) -> str:
    """Return a type as text.

    Raises:
        UserError: `FUNCTION_INVALID`.
    """
    text = returns.simpleString() if hasattr(returns, "simpleString") else returns
    if not isinstance(text, str) or not text.strip():
        raise invalid(None, f"returns is {returns!r}, which is no type.")
    return text.strip()


def invalid(name: str | None, detail: str, *, hint: str | None = None) -> UserError:
    """Return the error for a function that cannot be declared."""
    what = "A function" if name is None else f"Function {name}"
    return UserError(
        "FUNCTION_INVALID",
        f"{what} cannot be used in queries.",
        detail=detail,
        hint=hint or 'Write @headrace.function(returns="string") above a def in functions.py.',
    )
