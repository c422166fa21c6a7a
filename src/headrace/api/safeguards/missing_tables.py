"""The error for a source that a safeguard or key names and that does not exist."""

from __future__ import annotations

from headrace.catalog import Catalog
from headrace.errors import UserError
from headrace.names import LAKE, TableName
from headrace.suggestions import did_you_mean


def missing_table(catalog: Catalog, name: TableName, purpose: str) -> UserError:
    """Return the error `TABLE_NOT_FOUND`, with the nearest name that exists.

    Args:
        catalog: Where the tables are.
        name: The name that was given.
        purpose: What the table was wanted for: "could be held back".
    """
    return UserError(
        "TABLE_NOT_FOUND",
        f"There is no table {name} that {purpose}.",
        hint=f"{did_you_mean(str(name), map(str, catalog.pointers(LAKE)))}SHOW TABLES IN namespace lists those that "
        "exist.",
    )
