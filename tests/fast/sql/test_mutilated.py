"""Whatever is written, the answer is a reading or an error a user can act on."""

from __future__ import annotations

import contextlib
import re

from fast.sql.corpus import QUERIES, SCALARS, SPARK_QUERIES, SPARK_TABLES
from fast.sql.reading_cases import cases
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.algebra.schema import Column
from headrace.errors import HeadraceError, UserError
from headrace.names import LAKE, TableName
from headrace.sql.reader.reader import read
from headrace.sql.reader.syntax.tokens import tokenize

POOL = [*QUERIES, *SPARK_QUERIES, *(f"SELECT {text} AS x FROM o" for text in SCALARS)]
POOL += [query for query, _ in cases("refusals.spec")]
TOKENS = sorted({token.text for query in POOL for token in tokenize(query)})
COLUMNS = {
    name: tuple(Column(column, "any") for column in re.findall(r"(\w+) [A-Z]+", columns))
    for name, (columns, _) in SPARK_TABLES.items()
}
EDITS = st.lists(st.tuples(st.integers(0, 60), st.none() | st.sampled_from(TOKENS)), min_size=1, max_size=4)


def schema(name: TableName) -> tuple[Column, ...]:
    if name.table not in COLUMNS:
        raise UserError("TABLE_NOT_FOUND", f"There is no table {name}.")
    return COLUMNS[name.table]


@settings(deadline=None, max_examples=400)
@given(st.sampled_from(POOL), EDITS)
def test_no_text_breaks_the_reader(query: str, edits: list[tuple[int, str | None]]) -> None:
    tokens = [token.text for token in tokenize(query)]
    for at, text in edits:
        tokens[at : at + (text is None)] = [] if text is None else [text]
    with contextlib.suppress(HeadraceError):
        read(" ".join(tokens), resolve=lambda parts: TableName(LAKE, ("shop",), parts[-1]), schema=schema)
