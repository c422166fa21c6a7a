"""Child processes of a server that has imported what they need: a hundred of them take seconds.

The server of `multiprocessing` looks for modules where any Python does, and goes on without those that it does not
find. This one looks where tests do, and what it has not found is an error.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import sys
from multiprocessing import forkserver, spawn
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from unittest import mock

WITHOUT_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""Variables that keep numpy and Arrow from starting threads when they are imported: no child would have these."""

_context = multiprocessing.get_context("forkserver")
_modules: dict[str, None] = {}


def preload(*modules: str) -> None:
    """Have the server import modules, too: whoever starts children says so when it is imported itself."""
    _modules.update(dict.fromkeys(modules))


def forking() -> ForkServerContext:
    """Start the server, once, and return what makes its children."""
    _serve()
    return _context


@functools.cache
def _serve() -> None:
    _context.set_forkserver_preload(list(_modules))
    path = os.pathsep.join(spawn.get_preparation_data("")["sys_path"])  # as children have it later
    with mock.patch.dict(os.environ, {"PYTHONPATH": path, **WITHOUT_THREADS}):
        forkserver.ensure_running()
    assert not (lacking := lacks(*_modules)), f"the server could not import {', '.join(lacking)}"


def lacks(*modules: str) -> list[str]:
    """Ask a child which modules it would have to import."""
    ours, theirs = _context.Pipe(duplex=False)
    child = _context.Process(target=_tell_lacking, args=(theirs, modules))
    child.start()
    theirs.close()
    with ours:
        lacking: list[str] = ours.recv()
    child.join()
    return lacking


def _tell_lacking(told: Connection, modules: tuple[str, ...]) -> None:
    told.send([module for module in modules if module not in sys.modules])
