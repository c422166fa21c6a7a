"""Why tables of tests may be refreshed as they are."""

from __future__ import annotations

from headrace.reasons import FullReason

CHEAPER = frozenset({None, FullReason.COST, FullReason.COMPANION_BEHIND})
"""Reasons of tables so small that recomputing them may be cheaper, which leaves companions behind."""
