"""What did not do is tried again after so many changes, however many ask about each of them."""

from __future__ import annotations

from catalog_kit.samples import ORDERS

from headrace.statistics.failed_strategies import FORGOTTEN_AFTER, FailedStrategies


def test_each_change_counts() -> None:
    locators = FailedStrategies()
    locators.failed(ORDERS, ("k",))
    asked = [locators.barred(ORDERS) for _ in range(FORGOTTEN_AFTER + 1)]
    assert asked == [{("k",)}] * FORGOTTEN_AFTER + [frozenset()]


def test_a_change_that_several_ask_about_counts_once() -> None:
    locators = FailedStrategies()
    locators.failed(ORDERS, ("k",))
    asked = [locators.barred(ORDERS, f"version {n}") for n in range(FORGOTTEN_AFTER + 1) for _ in range(3)]
    assert asked == [{("k",)}] * 3 * FORGOTTEN_AFTER + [frozenset()] * 3
