"""Child processes that kill themselves, by SIGKILL, in the middle of what they do to a catalog."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable
from multiprocessing.process import BaseProcess

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from catalog_kit.forking import forking, preload
from headrace.catalog import Catalog, Publication

SURVIVED = 0
KILLED = -signal.SIGKILL

preload(__name__, "catalog_kit.samples", "psycopg", "alembic.command")


def die_at(point: int, work: Callable[..., None], *arguments: object) -> int:
    """Run work in a child that is killed before its n-th statement, or commit, or after the last; the exit code."""
    child = forking().Process(target=_doomed, args=(point, work, *arguments))
    child.start()
    child.join(60)
    code = child.exitcode
    child.close()
    assert code is not None
    return code


def start(work: Callable[..., None], *arguments: object) -> BaseProcess:
    """Run work in a child that the caller kills."""
    child = forking().Process(target=work, args=arguments, daemon=True)
    child.start()
    return child


def _doomed(point: int, work: Callable[..., None], *arguments: object) -> None:
    points = itertools.count(1)

    def reach(*_: object) -> None:
        if next(points) == point:
            os.kill(os.getpid(), signal.SIGKILL)

    work(reach, *arguments)


def watch(engine: Engine | type[Engine], reach: Callable[..., None]) -> None:
    """Let every statement and every commit of an engine be a point to die at."""
    sa.event.listen(engine, "before_cursor_execute", reach)
    sa.event.listen(engine, "commit", reach)


def counted(catalog: Catalog, work: Callable[[], object]) -> tuple[list[int], int]:
    """Do something to a catalog; after how many statements there was a commit, and how many statements there were."""
    told: list[bool] = []
    engine = catalog._database.engine
    heard: dict[str, Callable[..., None]] = {
        "before_cursor_execute": lambda *_: told.append(False),
        "commit": lambda *_: told.append(True),
    }
    for name, hear in heard.items():
        sa.event.listen(engine, name, hear)
    try:
        work()
    finally:
        for name, hear in heard.items():
            sa.event.remove(engine, name, hear)
    return [told[:place].count(False) for place, commit in enumerate(told) if commit], told.count(False)


def publish(reach: Callable[..., None], url: str, publication: Publication) -> None:
    """Publish; every statement is a point, the commit is one, and the moment after it is all later ones."""
    catalog = Catalog.open(url)
    watch(catalog._database.engine, reach)
    catalog.publish(publication)
    while True:
        reach()


def migrate(reach: Callable[..., None], url: str) -> None:
    """Open a catalog that must be migrated or made."""
    watch(Engine, reach)
    Catalog.open(url)


def publish_for_ever(url: str, publications: list[Publication]) -> None:
    """Publish one after the other until killed."""
    with Catalog.open(url) as catalog:
        for publication in publications:
            catalog.publish(publication)
