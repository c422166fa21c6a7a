"""Several stream tables that wait for somebody else who refreshes them; no JVM."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.stored_project import StoredProject

from headrace.catalog import resource_of
from headrace.errors import HeadraceError
from headrace.refresh.held_leases import holding_leases
from headrace.spark.interrupts import interrupt_thread


@pytest.fixture
def project(tmp_path: Path) -> Iterator[StoredProject]:
    made = StoredProject(tmp_path / "shop")
    made.source()
    yield made
    made.close()


def test_an_interrupt_ends_the_wait(project: StoredProject) -> None:
    names = [project.stream_table("one"), project.stream_table("two")]
    wait, ended = dt.timedelta(hours=1), []

    def refresh() -> None:
        try:
            project.hr.refresh([str(name) for name in names], full=True, wait=wait)
        except (KeyboardInterrupt, HeadraceError) as error:
            ended.append(type(error))

    with holding_leases(project.hr._catalog, [resource_of(name) for name in names]):
        thread = threading.Thread(target=refresh, daemon=True)
        thread.start()
        thread.join(1)
        interrupt_thread(thread.ident or 0, lambda: None, gone=lambda: not thread.is_alive())
        thread.join(60)
    assert ended == [KeyboardInterrupt]
