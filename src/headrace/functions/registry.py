"""The functions of a project: those of its file, reread on change, and registered ones."""

from __future__ import annotations

import hashlib
import importlib.util
import linecache
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType

from headrace.errors import UserError
from headrace.functions.declared_functions import MARK, Function, declare

FILE_NAME = "functions.py"
"""File in the project folder that declares its functions."""

MODULE_PREFIX = "_headrace_functions_"
"""Names of the modules that such files become; a file is no module that anybody else could import."""


class Functions:
    """The functions of one project; safe to use from several threads.

    A file that was changed is loaded again when the functions are next asked for: processes that run for long, and
    those of today, then agree on what a function is.

    Args:
        file: Where they are declared; there need not be one.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._text: bytes | None = None
        self._declared: dict[str, Function] = {}
        self._registered: dict[str, Function] = {}
        self._now: Mapping[str, Function] = MappingProxyType({})
        self._lock = threading.RLock()

    def register(self, function: Function) -> None:
        """Add a function, or replace the one of its name, for the life of this object."""
        with self._lock:
            self._registered[function.name] = function
            self._now = self._together()

    def now(self) -> Mapping[str, Function]:
        """Return all functions by name; the same object as long as nothing changed.

        Raises:
            UserError: `FUNCTION_INVALID`: the file cannot be loaded.
        """
        with self._lock:
            text = self._read()
            if text != self._text:
                self._declared = {} if text is None else _declared(self.file, text)
                self._text = text  # not before: a file that cannot be loaded is tried again
                self._now = self._together()
            return self._now

    def _read(self) -> bytes | None:
        try:
            return self.file.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unloadable(self.file, error.strerror or str(error)) from error

    def _together(self) -> Mapping[str, Function]:
        return MappingProxyType({**self._declared, **self._registered})


def _declared(file: Path, text: bytes) -> dict[str, Function]:
    found: dict[str, Function] = {}
    for variable, value in vars(_load(file, text)).items():
        told = getattr(value, MARK, None)
        if isinstance(told, dict):
            made = declare(told["name"] or variable, value, told["returns"], told["deterministic"])
            found[made.name] = made
    return found


def _load(file: Path, text: bytes) -> ModuleType:
    name = MODULE_PREFIX + hashlib.sha256(str(file).encode()).hexdigest()[:8]
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None, "a file name that ends with .py has a loader"
    module = importlib.util.module_from_spec(spec)
    linecache.checkcache(str(file))
    sys.modules[name] = module  # dataclasses look their module up there
    try:
        exec(compile(text, str(file), "exec"), vars(module))  # not the loader: it trusts old byte code
    except (Exception, SystemExit) as error:  # a file of the user's own may fail in any way
        raise _unloadable(file, _told(error, file)) from error
    return module


def _told(error: BaseException, file: Path) -> str:
    """Return an error's message and its line in the file."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(file)]
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == str(file) else (lines or [None])[-1]
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text}" + (f" (line {line})" if line else "")


def _unloadable(file: Path, detail: str) -> UserError:
    return UserError(
        "FUNCTION_INVALID",
        f"The functions in {file} cannot be loaded.",
        detail=detail,
        hint=f"Try it: python {file.name}. It may import what is installed, and must declare its functions with "
        "@headrace.function(returns=…).",
    )


def changed(then: Mapping[str, str], now: Callable[[], Mapping[str, Function]]) -> tuple[str, ...]:
    """Return the functions that are not what they were.

    Args:
        then: Fingerprints by name.
        now: Gives the functions there are; asked only when there is something to compare.

    Raises:
        UserError: `FUNCTION_INVALID`.
    """
    if not then:
        return ()
    there = now()
    return tuple(n for n, known in sorted(then.items()) if n not in there or there[n].fingerprint != known)


def signature(function: Function) -> str:
    """Return a function in one line, for people."""
    kind = "deterministic" if function.deterministic else "not deterministic"
    return f"{function.name}(…) → {function.returns}, {kind}, body {function.fingerprint}"
