"""Number of the stored layout of compiled views; status reads it without the compiler."""

from __future__ import annotations

LAYOUT = 12
"""Number of the rules' layout. Raise it when queries get other companions than before, or when what was refused is
maintained: stream tables that were defined under another number are defined and loaded again at their next refresh."""
