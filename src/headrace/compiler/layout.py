"""Number of the stored layout of compiled views; status reads it without the compiler."""

from __future__ import annotations

LAYOUT = 15
"""Number of the rules' layout. Raise it when queries get other companions than before: stream tables that were defined
under another number are defined and loaded again at their next refresh. It is not raised for queries that were refused
and are maintained now, because every table would be loaded again for the few; the release notes name those."""
