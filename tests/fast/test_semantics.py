"""Settings that change results, as somebody wrote them."""

from __future__ import annotations

import pytest

from headrace.semantics import ANSI, CASE_SENSITIVE, TIME_ZONE, Semantics


@pytest.mark.parametrize("on", ["true", "TRUE", " True "])
def test_options_are_read_whatever_their_case(on: str) -> None:
    for ansi, case in ((on, "FALSE"), ("False", on)):
        options = {TIME_ZONE: "Europe/Vienna", ANSI: ansi, CASE_SENSITIVE: case}
        assert Semantics.established_by(options.__getitem__) == Semantics("Europe/Vienna", ansi == on, case == on)
