"""Compares a server with one that its caller would start: settings, variables, versions."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import headrace
from headrace.config import FILE_NAME

PREFIXES = ("HEADRACE_", "SPARK_", "PYSPARK_", "HADOOP_", "AWS_", "AZURE_", "GOOGLE_", "PG")
NAMES = frozenset({"JAVA_HOME", "TZ", "PYTHONPATH", "LC_ALL", "LC_CTYPE", "XDG_CACHE_HOME", "KRB5CCNAME"})
"""Variables that settings, Spark, databases and object stores look at."""

NOT_SETTINGS = frozenset({"HEADRACE_PROJECT", "HEADRACE_NO_SERVE"})
"""Of these, those that say nothing about the project."""


class Freshness:
    """The settings, variables and code that a server was started with.

    Args:
        root: The project folder.
        environment: The variables that it was started with.
    """

    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        self._root = root
        self._environment = dict(environment)
        self._settings = self._read()
        self._code: dict[str, int] = {}
        self._have_code_changed()

    def staleness(self, asked: Mapping[str, object]) -> str | None:
        """Return why a caller needs another server, as the end of a sentence; or None.

        Args:
            asked: The request: `version`, `python`, `prefix`, `environment`, `args`; what is missing does not matter.
        """
        if asked.get("version", headrace.__version__) != headrace.__version__:
            return f"was of version {headrace.__version__}, this is {asked.get('version')}"
        if asked.get("python", sys.version) != sys.version or asked.get("prefix", sys.prefix) != sys.prefix:
            return f"ran in another Python environment ({sys.prefix})"
        if self._read() != self._settings:
            return f"was started before {FILE_NAME} changed"
        if self._have_code_changed():
            return "was started before its program files changed"
        given = asked.get("environment")
        if isinstance(given, Mapping) and (names := self._differing(given, asked.get("args"))):
            return f"was started with another value of {', '.join(names)}"
        return None

    def _differing(self, given: Mapping[str, str], args: object) -> list[str]:
        named = {*_named(self._settings.decode("utf-8", "replace")), *_named(" ".join(map(str, _texts(args))))}
        differing = []
        for name in sorted({*given, *self._environment}):
            if name in named or (name not in NOT_SETTINGS and (name in NAMES or name.startswith(PREFIXES))):
                own, wanted = self._environment.get(name), given.get(name)
                if name in named and own is None and wanted is not None:
                    os.environ[name] = self._environment[name] = wanted  # nothing here can have used it yet
                elif own != wanted:
                    differing.append(name)
        return differing

    def _have_code_changed(self) -> bool:
        """Return whether a loaded file was written since; notes those that were loaded meanwhile."""
        now = {file: _written(file) for file in _loaded()}
        changed = any(now.get(file, 0) != written for file, written in self._code.items())
        self._code = {**now, **self._code}
        return changed

    def _read(self) -> bytes:
        try:
            return (self._root / FILE_NAME).read_bytes()
        except OSError:
            return b""


def _named(text: str) -> list[str]:
    """Return the variables that connection strings in a text name."""
    return [name for found in re.findall(r"""env:(\w+)|url_env\s*=\s*["'](\w+)["']""", text) for name in found if name]


def _texts(found: object) -> list[object]:
    return list(found) if isinstance(found, (list, tuple)) else []


def _loaded() -> frozenset[str]:
    """Return the program files of Headrace that have been loaded."""
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == "headrace"]
    return frozenset(str(module.__file__) for module in modules if getattr(module, "__file__", None))


def _written(file: str) -> int:
    try:
        return os.stat(file).st_mtime_ns
    except OSError:
        return 0
