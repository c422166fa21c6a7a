"""A fingerprint changes when a function may compute something else, and with nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headrace.functions import Functions

BASE = '''
import functools
import logging
import re
from dataclasses import dataclass
from enum import Enum

import headrace

log = logging.getLogger(__name__)
RATES = {"EU": 2, "US": 3}
NAMES = {"alice", "bob", "carol"}
PATTERN = re.compile("a+")


class Level(Enum):
    LOW = 1
    HIGH = 2


@dataclass(frozen=True)
class Tax:
    percent: int

    def of(self, amount):
        return amount * self.percent


TAX = Tax(19)


def unused(x):
    return x + 1


def helper(region):
    return RATES.get(region, 1)


def scaled(by):
    def inner(x):
        return x * by
    return inner


@functools.cache
def cached(x):
    return x + 5


@headrace.function(returns="bigint")
def rated(region, amount, least=3):
    """What an amount is worth."""
    if PATTERN.match(region or "") or region in NAMES or region == Level.HIGH.name:
        log.info("%s", region)
    return max(least, TAX.of(amount) * helper(region)) + cached(1)


@headrace.function(returns="int")
def other(x):
    return x


by_two = headrace.function(returns="int")(scaled(2))
short = headrace.function(returns="int")(lambda x: x + 1)
'''


def fingerprints(folder: Path, text: str) -> dict[str, str]:
    file = folder / "functions.py"
    file.write_text(text, encoding="utf-8")
    return {name: f.fingerprint for name, f in Functions(file).now().items()}


@pytest.fixture
def base(tmp_path: Path) -> dict[str, str]:
    return fingerprints(tmp_path, BASE)


def test_all_declared_functions_are_found(base: dict[str, str]) -> None:
    assert list(base) == ["rated", "other", "by_two", "short"]


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("max(least,", "min(least,", {"rated"}),
        ('"EU": 2', '"EU": 4', {"rated"}),
        ('{"alice",', '{"alina",', {"rated"}),
        ('compile("a+")', 'compile("b+")', {"rated"}),
        ("Tax(19)", "Tax(20)", {"rated"}),
        ("amount * self.percent", "amount + self.percent", {"rated"}),
        ("LOW = 1", "LOW = 3", {"rated"}),
        ("region, 1)", "region, 2)", {"rated"}),
        ("least=3", "least=4", {"rated"}),
        ("return x + 5", "return x + 6", {"rated"}),
        ('returns="bigint"', 'returns="int"', {"rated"}),
        ('returns="bigint"', 'returns="bigint", deterministic=False', {"rated"}),
        ("    return x\n\n\nby_two", "    return -x\n\n\nby_two", {"other"}),
        ("scaled(2)", "scaled(3)", {"by_two"}),
        ("return x * by", "return x - by", {"by_two"}),
        ("lambda x: x + 1", "lambda x: x + 2", {"short"}),
    ],
)
def test_what_changes_a_function(base: dict[str, str], tmp_path: Path, old: str, new: str, changed: set[str]) -> None:
    assert BASE.count(old) == 1
    now = fingerprints(tmp_path, BASE.replace(old, new))
    assert {name for name in now if now[name] != base[name]} == changed


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("What an amount is worth.", "Another text."),
        ("    return x\n\n\nby_two", "    # says why\n    return (x)\n\n\n\nby_two"),
        ("return x + 1\n", "return x + 3\n"),
        ('"EU": 2, "US": 3', '"EU": 2,    "US": 3'),
        ('{"alice", "bob", "carol"}', '{"carol", "bob", "alice"}'),
    ],
)
def test_what_does_not(base: dict[str, str], tmp_path: Path, old: str, new: str) -> None:
    assert BASE.count(old) >= 1
    assert fingerprints(tmp_path, BASE.replace(old, new)) == base


def test_another_process_finds_the_same(base: dict[str, str], tmp_path: Path) -> None:
    program = (
        "import sys, pathlib; from headrace.functions import Functions; import logging; logging.getLogger('more');"
        "print({n: f.fingerprint for n, f in Functions(pathlib.Path(sys.argv[1])).now().items()})"
    )
    source = str(Path(__file__).parents[3] / "src")
    for seed in ("1", "2"):  # sets of strings are in another order
        ran = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / "functions.py")],
            env={"PYTHONPATH": source, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert ran.stdout.strip() == str(base)
