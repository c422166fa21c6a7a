"""Settings that change results, as somebody wrote them."""

from __future__ import annotations

import pytest

from headrace.semantics import (
    ANSI,
    CASE_SENSITIVE,
    CTE_PRECEDENCE,
    ORDER_BY_ORDINAL,
    READING,
    SET_OPERATIONS_IN_ORDER,
    TIME_ZONE,
    Semantics,
)


@pytest.mark.parametrize("on", ["true", "TRUE", " True "])
def test_options_are_read_whatever_their_case(on: str) -> None:
    for ansi, case in ((on, "FALSE"), ("False", on)):
        options = {**READING, TIME_ZONE: "Europe/Vienna", ANSI: ansi, CASE_SENSITIVE: case}
        assert Semantics.established_by(options.__getitem__) == Semantics("Europe/Vienna", ansi == on, case == on)


def test_options_by_which_texts_are_read_otherwise_are_kept_where_they_are_not_as_usual() -> None:
    changed = {SET_OPERATIONS_IN_ORDER: " TRUE", CTE_PRECEDENCE: "legacy", ORDER_BY_ORDINAL: "True"}
    found = Semantics.established_by({**Semantics().options(), **changed}.__getitem__)
    assert found.unusual == ((CTE_PRECEDENCE, "LEGACY"), (SET_OPERATIONS_IN_ORDER, "true"))
    assert found.options() == {**Semantics().options(), CTE_PRECEDENCE: "LEGACY", SET_OPERATIONS_IN_ORDER: "true"}
    assert Semantics.established_by(found.options().__getitem__) == found
