"""The 22 queries of TPC-H, maintained through rounds of changes to every table: after each, all equal their queries.

A query whose result never changes proves nothing, so each must have changed in several rounds; `pytest -s` shows which.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit import tpch_changes as changes
from kit.together import Together
from kit.tpch import COLUMNS

from headrace.demo import tpch, tpch22

SCALE = 0.01
EVERY = 200

OTHER_PARAMETERS = {
    "q18": ("> 300", "> 240"),
    "q20": ("= 'CANADA'", "IN ('CANADA', 'VIETNAM', 'IRAN', 'PERU')"),
    "q21": ("= 'SAUDI ARABIA'", "IN ('SAUDI ARABIA', 'CHINA', 'VIETNAM', 'IRAN')"),
}
"""With the usual ones next to nothing is left at this scale."""


def text(name: str) -> str:
    """A query for DuckDB, whose averages of decimals are doubles."""
    query = tpch22.text(name)
    if name in OTHER_PARAMETERS:
        query = query.replace(*OTHER_PARAMETERS[name])
    return re.sub(r"avg\((\w+)\)", r"CAST(avg(\1) AS DECIMAL(19,6))", query)


def rounds() -> Iterator[tuple[str, list[str]]]:
    """Each table by itself, then orders that come and go, then everything in one window."""
    for number, table in enumerate(tpch.TABLES, 3):
        yield table, list(changes.updates(table, number, changes.every_for(table, EVERY)))
    yield "RF1", list(changes.rf1(1, EVERY))
    yield "RF2", list(changes.rf2(1, EVERY))
    for number in range(11, 13):
        yield f"all {number}", list(changes.everything(number, EVERY))


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Together:
    folder = tmp_path_factory.mktemp("tpch")
    tpch.generate(folder, SCALE)
    return Together(COLUMNS, {name: text(name) for name in tpch22.NAMES}, Path(folder))


def test_every_query_follows_every_round(together: Together) -> None:
    assert [name for name, view in together.views.items() if not view.first] == []
    moved: dict[str, list[str]] = {name: [] for name in tpch22.NAMES}
    for label, statements in rounds():
        for name, change in together.pass_(statements).items():
            moved[name] += [label] if change else []
    for name, labels in moved.items():
        print(name, ", ".join(labels))
    assert {name: labels for name, labels in moved.items() if len(labels) < 3} == {}
    # each table matters to several queries by itself
    assert all(sum(table in labels for labels in moved.values()) >= 2 for table in tpch.TABLES)
