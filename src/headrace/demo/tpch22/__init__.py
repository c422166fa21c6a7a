"""The 22 TPC-H queries as stream tables, with TPC-H's validation parameters.

The texts are Spark SQL over bare table names; wherever they run, the tables' namespace is the current one. ORDER BY
without LIMIT is kept, though a table has no order. Where LIMIT would cut between rows that ORDER BY does not tell
apart, columns are appended to it; each such text says so. q15's view is a common table expression.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

NAMES = tuple(f"q{number:02}" for number in range(1, 23))
"""`q01` to `q22`."""


@cache
def text(name: str) -> str:
    """Return the text of one query.

    Args:
        name: One of `NAMES`.
    """
    return files(__name__).joinpath(f"{name}.sql").read_text(encoding="utf-8").strip()
