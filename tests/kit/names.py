"""Names that no two tests share."""

from __future__ import annotations

import uuid


def temp_name(stem: str) -> str:
    """A unique name for a temporary view, that needs no quotes."""
    return f"{stem}_{uuid.uuid4().hex[:8]}"
