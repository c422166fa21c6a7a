"""Events are kept in the catalog, those included that were told while it could not be written."""

from __future__ import annotations

import datetime as dt
import sqlite3
from pathlib import Path

import pytest
from catalog_kit.clock import ManualClock

from headrace.catalog import Catalog
from headrace.events import Events, Notice
from headrace.observability import journal
from headrace.observability.journal import Journal


def test_what_is_told_during_an_outage_is_written_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "MOST_UNWRITTEN", 2)
    file, events = tmp_path / "headrace.db", Events()
    with (
        Catalog.open(f"sqlite:///{file}", busy_timeout=dt.timedelta(milliseconds=10)) as catalog,
        Journal(catalog, events, ManualClock()) as told,
    ):
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        for text in "abc":
            events.emit(Notice(text))
            told.write()
        other.execute("ROLLBACK")
        other.close()
        assert catalog.events() == ()
        events.emit(Notice("d"))
        told.write()
        told.write()
        assert [event.fields["message"] for event in catalog.events()] == ["b", "c", "d"]
