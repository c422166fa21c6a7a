"""A sample of histories with each pass of the optimiser switched off: results stay equal, only costs change."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit.duck import DuckExecutor
from kit.fixture import parse
from kit.long_tests import LONG
from kit.maintained import replay

from headrace.optimizer.passes import PASSES

EXECUTOR = DuckExecutor()
ACID = sorted((Path(__file__).parent / "acid").glob("*.txt"))
OPTIONAL = tuple(dict.fromkeys(each.name for each in PASSES if not each.required))
EVERY = len(OPTIONAL) * (1 if LONG else 2)
"""One of so many histories is played without a pass; another sample for each, so that half of them are played, and all
where the long tests are meant."""


@pytest.mark.parametrize("name", OPTIONAL)
def test_results_stay_equal_without_a_pass(name: str) -> None:
    first = OPTIONAL.index(name) * EVERY // len(OPTIONAL)
    for path in ACID[first::EVERY]:
        replay(EXECUTOR, parse(path.read_text()).case, disabled=frozenset({name}))


def test_results_stay_equal_without_any_optional_pass() -> None:
    for path in ACID[:: EVERY // 2]:
        replay(EXECUTOR, parse(path.read_text()).case, disabled=frozenset(OPTIONAL))
