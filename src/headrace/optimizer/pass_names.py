"""Names of passes: all, those that decide what is stored, those that can be disabled."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

from headrace.errors import UserError
from headrace.optimizer.optimizer_pass import Phase
from headrace.optimizer.passes import PASSES

DEFINING = frozenset(each.name for each in PASSES if each.phase is Phase.LOGICAL)
"""Passes that run once per definition: what a companion stores follows from them."""


def check_disabled(names: Collection[str]) -> frozenset[str]:
    """Return names of passes that can be switched off.

    Raises:
        UserError: `CONFIG_INVALID`: there is no such pass, or results depend on it.
    """
    required = {each.name: each.required for each in PASSES if each.required}
    known = dict.fromkeys(each.name for each in PASSES)
    for name in names:
        if name not in known:
            close = get_close_matches(name, known, 1)
            raise UserError(
                "CONFIG_INVALID",
                f"[optimizer] disable names the pass '{name}', which does not exist.",
                hint=f"Did you mean {close[0]}?" if close else f"Passes are {', '.join(known)}.",
            )
        if name in required:
            raise UserError(
                "CONFIG_INVALID",
                f"The pass '{name}' cannot be switched off.",
                detail=f"Without it {required[name]}.",
                hint="Take it out of disable in [optimizer].",
            )
    return frozenset(names)
