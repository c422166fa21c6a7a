"""Headrace keeps SQL-defined tables fresh on Apache Spark by incremental view maintenance.

In come SQL, sources' changes and schedules; out go tables that equal their queries at their frontiers. `open()` is
the door.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.api.facade import Headrace, open
    from headrace.errors import HeadraceError
    from headrace.functions import function
    from headrace.project.lake_move.move_catalog import move_catalog

__version__ = "0.1.0"
__all__ = ["Headrace", "HeadraceError", "__version__", "function", "move_catalog", "open"]


def __getattr__(name: str) -> Any:
    """Import the public names at first use: `import headrace` itself must cost nothing."""
    if name in ("Headrace", "open"):
        from headrace.api import facade

        return getattr(facade, name)
    if name == "move_catalog":
        from headrace.project.lake_move.move_catalog import move_catalog

        return move_catalog
    if name == "function":
        from headrace.functions import function

        return function
    if name == "HeadraceError":
        from headrace.errors import HeadraceError

        return HeadraceError
    raise AttributeError(f"module 'headrace' has no attribute {name!r}")
