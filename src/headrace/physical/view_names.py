"""Names of temporary views: unique to a refresh, or the same for all that share a result."""

from __future__ import annotations

import hashlib
import re

from headrace.names import RESERVED_PREFIX, TableName
from headrace.physical.facts import Facts


def view_name(facts: Facts, stem: str) -> str:
    """Return a temporary name that is unique to this refresh."""
    return f"__hr_{facts.tag}_{stem}"


def change_views(facts: Facts) -> dict[TableName, str]:
    """Return the temporary names of the sources' changes."""
    changed = [s.name for s in facts.sources if s.change is not None]
    # Spark takes no other characters in the name of a temporary view
    return {n: view_name(facts, f"change{i}_{re.sub('[^A-Za-z0-9_]', '_', n.table)}") for i, n in enumerate(changed)}


def view_named(text: str) -> str:
    """Return a temporary name that depends on a text only."""
    return f"{RESERVED_PREFIX}change_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
