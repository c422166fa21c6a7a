"""Fingerprints Python functions: a number that changes when the result may.

The text of the function counts, without comments, layout and docstring; so does everything it refers to, as it is when
the function is loaded: plain values, other functions and classes of the same module with what those refer to, values it
closes over, defaults. Of what comes from other modules only the name counts, and of objects of their classes only the
class: code of installed packages is not looked into, nor what a function reads while it runs (files, environment,
network).
"""

from __future__ import annotations

import ast
import datetime as dt
import enum
import functools
import hashlib
import inspect
import re
import textwrap
import types
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

_PLAIN = (type(None), bool, int, float, complex, str, bytes, Decimal, Fraction, UUID)
_TIMES = (dt.date, dt.time, dt.timedelta, dt.tzinfo)
_LENGTH = 16
"""Hexadecimal digits: 64 bits tell apart what one project declares."""


def fingerprint(call: Any, returns: str, deterministic: bool) -> str:
    """Return the fingerprint of a function.

    Args:
        call: The function.
        returns: The type it returns.
        deterministic: Whether it is declared deterministic.
    """
    digest = hashlib.sha256(f"{returns.lower()}|{deterministic}".encode())
    for part in _Walk().of(call):
        digest.update(b"\0" + part.encode("utf-8", "backslashreplace"))
    return digest.hexdigest()[:_LENGTH]


class _Walk:
    """Goes through what a function refers to, each thing once."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # an id is another object's once its object is gone

    def of(self, value: Any, home: str | None = None) -> Iterator[str]:
        """Yield the parts that distinguish a value from others.

        Args:
            value: What a function refers to, or the function itself.
            home: The module whose functions and classes are looked into; that of the first function when None.
        """
        if isinstance(value, _PLAIN) and not isinstance(value, enum.Enum):
            yield f"{type(value).__name__} {value!r}"
            return
        if id(value) in self._seen:
            yield f"again {self._seen[id(value)]}"
            return
        self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        yield from self._compound(value, home)

    def _compound(self, value: Any, home: str | None) -> Iterator[str]:
        if isinstance(value, types.MethodType):
            yield from self.of(value.__func__, home)
            yield from self.of(value.__self__, home)
        elif wrapped := _wrapped(value):
            yield f"{type(value).__qualname__} around"
            yield from self.of(wrapped, home)
        elif isinstance(value, types.FunctionType):
            yield from self._function(value, home)
        elif isinstance(value, type):
            yield from self._class(value, home)
        elif isinstance(value, types.ModuleType):
            yield f"module {value.__name__}"
        else:
            yield from self._data(value, home)

    def _function(self, value: types.FunctionType, home: str | None) -> Iterator[str]:
        if home is not None and value.__module__ != home:
            yield f"function {value.__module__}.{value.__qualname__}"
            return
        yield f"function {_text(value)}"
        yield from self.of(value.__defaults__, value.__module__)
        yield from self.of(value.__kwdefaults__, value.__module__)
        for name, referred in sorted(_referred(value).items()):
            yield name
            yield from self.of(referred, value.__module__)

    def _class(self, value: type, home: str | None) -> Iterator[str]:
        yield f"class {value.__module__}.{value.__qualname__}"
        if value.__module__ != home:
            return
        for base in value.__bases__:
            yield from self.of(base, home)
        for name, member in sorted(vars(value).items()):
            if name in _OF_EVERY_CLASS:
                continue
            yield name
            inner = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
            parts = (inner.fget, inner.fset) if isinstance(inner, property) else (inner,)
            for part in parts:
                yield from self.of(part, home)

    def _data(self, value: Any, home: str | None) -> Iterator[str]:
        """Yield the contents of containers, and attributes of objects of known classes."""
        yield f"{type(value).__module__}.{type(value).__qualname__}"
        if isinstance(value, (*_TIMES, re.Pattern, range)):
            yield repr(value)
        elif isinstance(value, enum.Enum):
            yield value.name
            yield from self.of(value.value, home)
        elif isinstance(value, Mapping):
            yield from self._each((part for item in value.items() for part in item), home)
        elif isinstance(value, (set, frozenset)):
            yield from sorted(" ".join(_Walk().of(item, home)) for item in value)
        elif isinstance(value, (list, tuple)):
            yield from self._each(value, home)
        elif isinstance(value, functools.partial):
            yield from self._each((value.func, value.args, value.keywords), home)
        elif type(value).__module__ == home:
            yield from self._each((type(value), value.__getstate__()), home)

    def _each(self, values: Iterable[Any], home: str | None) -> Iterator[str]:
        for value in values:
            yield from self.of(value, home)


_OF_EVERY_CLASS = frozenset(
    {"__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__firstlineno__", "__static_attributes__"}
    | {"__annotations__", "__annotate_func__", "__annotations_cache__", "__abstractmethods__", "_abc_impl"}
)


def _wrapped(value: Any) -> Any:
    """Return the function inside a wrapper such as `functools.cache`, if it is one."""
    return None if isinstance(value, (types.FunctionType, type)) else getattr(value, "__wrapped__", None)


def _referred(value: types.FunctionType) -> dict[str, Any]:
    """Return the globals and closed-over values that a function uses, builtins apart."""
    found = {n: value.__globals__[n] for n in _names(value.__code__) if n in value.__globals__}
    for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue  # not assigned yet: calling it would fail
    return found


def _names(code: types.CodeType) -> set[str]:
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _text(value: types.FunctionType) -> str:
    """Return a function's own text.

    Its byte code where there is no text, or several functions share it.
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(value)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return _byte_code(value.__code__)
    if value.__code__.co_name == "<lambda>":
        found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
        return ast.unparse(found[0]) if len(found) == 1 else _byte_code(value.__code__)
    own = tree.body[0]
    if not isinstance(own, (ast.FunctionDef, ast.AsyncFunctionDef)) or own.name != value.__code__.co_name:
        return _byte_code(value.__code__)
    own.decorator_list = [d for d in own.decorator_list if not _is_ours(d)]
    for node in ast.walk(own):
        if (
            isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(own)


def _is_ours(decorator: ast.expr) -> bool:
    """Return whether a decorator is `headrace.function(…)`, which is fingerprinted apart."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(called) in ("headrace.function", "function")


def _byte_code(code: types.CodeType) -> str:
    constants = (_byte_code(c) if isinstance(c, types.CodeType) else " ".join(_Walk().of(c)) for c in code.co_consts)
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {' '.join(constants)}"
