"""FULL or DIFFERENTIAL under AUTO: what the model says, what history says, and when the other is tried again."""

from __future__ import annotations

import pytest

from headrace.engine.choose import PROBE_EVERY, _prefers_full
from headrace.engine.facts import Pace


@pytest.mark.parametrize(
    ("pace", "expected", "model", "full"),
    [
        (Pace(), (1.0, 2.0), True, True),
        (Pace(), (2.0, 1.0), False, False),
        # history overrules the model
        (Pace(1.0, 4.0), (1.0, 2.0), False, True),
        # but not for ever
        (Pace(1.0, 4.0, 0, PROBE_EVERY), (1.0, 2.0), False, False),
        (Pace(4.0, 1.0, PROBE_EVERY, 0), (2.0, 1.0), True, True),
        # unless it would be dear
        (Pace(1.0, 9.0, 0, PROBE_EVERY), (1.0, 9.0), False, True),
        (Pace(1.0, 4.0, 0, PROBE_EVERY - 1), (1.0, 2.0), False, True),
    ],
)
def test_the_choice(pace: Pace, expected: tuple[float, float], model: bool, full: bool) -> None:
    assert _prefers_full(pace, expected, model) is full
