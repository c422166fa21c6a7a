"""All of TPC-H is maintained: none of the 22 queries falls back to FULL."""

from __future__ import annotations

import pytest
from kit.tpch import COLUMNS, compiled

from headrace.demo import tpch, tpch22


@pytest.mark.parametrize("name", tpch22.NAMES)
def test_a_query_is_maintained(name: str) -> None:
    view = compiled(tpch22.text(name))
    assert view.refusals == ()
    assert view.delta_program(frozenset(view.sources)) is not None


def test_together_they_read_every_table() -> None:
    read = {source.table for name in tpch22.NAMES for source in compiled(tpch22.text(name)).sources}
    assert read == set(tpch.TABLES) == COLUMNS.keys()
