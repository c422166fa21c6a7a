"""Random deployments over random pipelines: whatever is asked for in whatever order, every table equals its query."""

from __future__ import annotations

import os
import random

import pytest
from kit.long_tests import LONG
from kit.random_deployments import RandomDeployments

from headrace.api.facade import Headrace

EXAMPLES = int(os.environ.get("HEADRACE_EXAMPLES", "10" if LONG else "1"))
FIRST = int(os.environ.get("HEADRACE_TEST_SEED", "0"))
STEPS = 40 if LONG or EXAMPLES > 1 else 8


@pytest.mark.parametrize("seed", range(FIRST, FIRST + EXAMPLES))
def test_whatever_is_deployed(hr: Headrace, ns: str, seed: int) -> None:
    chance = random.Random(seed)
    deployments = RandomDeployments(hr, ns, chance, chance.randint(3, 7) if STEPS > 8 else 4)
    for _ in range(STEPS):
        deployments.step()
    deployments.end()
    assert sum(deployments.done.values()) > STEPS / 3, deployments.done
