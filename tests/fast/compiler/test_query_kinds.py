"""What becomes of each kind of query; `docs/supported.md` counts the queries of `query_kinds.spec`."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from kit.query_kinds import Query, by_duckdb, compiled, queries

PAGE = Path(__file__).parents[3] / "docs" / "supported.md"


def test_no_query_stands_there_twice() -> None:
    texts = [query.text for query in queries()]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("query", queries(), ids=lambda query: query.text[:60])
def test_an_outcome(query: Query) -> None:
    refusals = compiled(query.text, by_duckdb(query)).refusals
    assert (refusals[0].code if refusals else "") == query.code, refusals


def test_the_page_counts_them() -> None:
    kinds: defaultdict[str, list[Query]] = defaultdict(list)
    for query in queries():
        kinds[query.kind].append(query)
    rows = [_row(kind, found) for kind, found in kinds.items()]
    table = "\n".join([*rows, _row("all", queries(), because=False)])
    assert table in PAGE.read_text(encoding="utf-8"), f"the table is\n{table}"


def _row(kind: str, found: list[Query] | tuple[Query, ...], *, because: bool = True) -> str:
    followed = sum(not query.code for query in found)
    reasons = dict.fromkeys(query.because for query in found if query.code)
    words = "; ".join(reasons) if because else ""
    return f"| {kind} | {len(found)} | {followed} | {100 * followed // len(found)} % | {words} |"
