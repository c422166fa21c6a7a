"""Random deployments over random pipelines: whatever is asked for in whatever order, every table equals its query."""

from __future__ import annotations

import os
import random
import threading
import time
from contextlib import ExitStack

import pytest
from kit.long_tests import LONG
from kit.random_dag import statement
from kit.random_deployments import ON_THE_WAY, REFUSALS, TROUBLED, RandomDeployments
from kit.waiting import running

from headrace.api.facade import Headrace

EXAMPLES = int(os.environ.get("HEADRACE_EXAMPLES", "10" if LONG else "1"))
FIRST = int(os.environ.get("HEADRACE_TEST_SEED", "0"))
STEPS = 40 if LONG or EXAMPLES > 1 else 8


@pytest.mark.long
@pytest.mark.parametrize("seed", range(FIRST, FIRST + EXAMPLES))
def test_whatever_is_deployed(hr: Headrace, ns: str, seed: int) -> None:
    chance = random.Random(seed)
    deployments = RandomDeployments(hr, ns, chance, chance.randint(3, 7) if STEPS > 8 else 4)
    for _ in range(STEPS):
        deployments.step()
    deployments.end()
    assert sum(deployments.done.values()) > STEPS / 3, deployments.done


MINUTES = float(os.environ.get("HEADRACE_SOAK_MINUTES", "20" if LONG else "0"))
"""Of the soak, which is a test of its own where it is meant."""


def soak(hr: Headrace, ns: str) -> None:
    """Every other pipeline is at rest but for what the script says; the others have writers and schedulers at work."""
    end, number = time.monotonic() + 60 * MINUTES, 0
    while time.monotonic() < end:
        seed, number = random.randrange(10**6), number + 1
        chance = random.Random(seed)
        hr.spark.sql(f"CREATE NAMESPACE lake.{ns}_{number}")
        deployments = RandomDeployments(
            hr, f"{ns}_{number}", chance, chance.randint(3, 7), TROUBLED, REFUSALS | ON_THE_WAY, alone=number % 2 == 1
        )
        deployments.script.insert(0, f"seed {seed}, {'alone' if deployments.alone else 'beside others'}:")
        with ExitStack() as beside:
            if not deployments.alone:
                beside.enter_context(running(lambda stopping, d=deployments: write(d, stopping)))  # type: ignore[misc]
                beside.enter_context(running(lambda stopping: hr.run(stopping=stopping, max_concurrent=2)))
            for _ in range(30):
                deployments.step()
                if time.monotonic() > end:
                    break
        deployments.alone = True
        deployments.end()
        print(f"pipeline {number}: {deployments.done}", flush=True)
        for table in [t.name for t in hr.status() if t.name.startswith(f"{ns}_{number}.")]:
            hr.drop_stream_table(table, if_exists=True, cascade=True)


def write(deployments: RandomDeployments, stopping: threading.Event) -> None:
    """Change sources until stopped."""
    chance = random.Random(deployments.chance.random())
    while not stopping.wait(chance.random()):
        sql = statement(chance, deployments.sources[1:])  # the first one is for the script
        deployments.script.append(sql)
        deployments.hr.spark.sql(sql)


if MINUTES:
    test_soak = soak
