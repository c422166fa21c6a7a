"""A kind of source that only this test registers is created, followed and dropped like any other."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit.folder_kind import FOLDER, MARK

from headrace.api.facade import Headrace
from headrace.errors import HeadraceError
from headrace.sources import registry


def rows(hr: Headrace, table: str) -> list[tuple[object, ...]]:
    return sorted(tuple(r) for r in hr.sql(f"SELECT * FROM lake.{table}").collect())


def test_a_new_kind_is_followed(hr: Headrace, ns: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "KINDS", (*registry.KINDS, FOLDER))
    orders, items, source = tmp_path / "orders.csv", tmp_path / "items.csv", f"{ns}_files"
    orders.write_text("id:bigint;region:string\n1;EU\n2;US\n2;US\n")
    created = hr.sql(f"CREATE SOURCE {source} FROM FOLDER '{tmp_path}' TABLES (orders) DELIMITER ';'")
    assert (created.inserted, created.mirrors, (tmp_path / MARK).exists()) == (3, (f"{source}.orders",), True)
    hr.create_stream_table(
        f"{ns}.regions",
        f"SELECT region, count(*) AS n FROM {source}.orders GROUP BY region",
        refresh_mode="DIFFERENTIAL",
    )
    orders.write_text("id:bigint;region:string\n2;US\n3;US\n")
    result = hr.refresh(f"{ns}.regions")
    assert (result.mode.value, rows(hr, f"{ns}.regions")) == ("DIFFERENTIAL", [("US", 2)])
    assert hr.refresh(f"{ns}.regions").mode.value == "NO_CHANGE"
    items.write_text("id:int\n7\n")
    assert hr.sql(f"ALTER SOURCE {source} ADD TABLES (items AS things)").mirrors == (f"{source}.things",)
    assert rows(hr, f"{source}.things") == [(7,)]
    assert hr.sql(f"ALTER SOURCE {source} RESNAPSHOT TABLES (orders)").inserted == 0
    (info,) = (s for s in hr.sql("SHOW SOURCES") if s.name == source)
    assert (info.kind, info.url, len(info.mirrors)) == ("folder", str(tmp_path), 2)
    assert hr.sources.status(source).waiting_files == 0
    with pytest.raises(HeadraceError, match="HAS_CONSUMERS"):
        hr.sql(f"DROP SOURCE {source}")
    hr.drop_stream_table(f"{ns}.regions")
    assert hr.sql(f"DROP SOURCE {source}") == (f"{source}.orders", f"{source}.things")
    assert not (tmp_path / MARK).exists()
