"""Greens that read another generation, which is not exchanged along."""

from __future__ import annotations

from dataclasses import replace

import pytest
from catalog_kit.clock import START
from catalog_kit.samples import create, lake, see

from headrace.catalog import Catalog, Green, Role
from headrace.definitions.details import Details, to_json
from headrace.deploy.readiness import refuse_left_behind, refuse_torn
from headrace.errors import UserError
from headrace.semantics import Semantics

LINES, FIRST, BASE = (lake(f"shop.{name}") for name in ("lines", "first", "base"))
NEW_LINES, NEW_FIRST = (lake(f"shop__v2.{name}") for name in ("lines", "first"))


def test_a_green_is_not_promoted_without_the_one_that_it_reads(timed: Catalog) -> None:
    """Somebody takes that one back, and has ended its membership; who reads it is still to be defined again."""
    see(timed, BASE)
    plain = Details("SELECT 1", (), Semantics(), (), (), {}, (), None)
    create(timed, LINES, BASE, details=to_json(plain))
    create(timed, FIRST, LINES, details=to_json(plain))
    create(timed, NEW_LINES, BASE, details=to_json(replace(plain, deployment="v2")))
    redirected = replace(plain, redirects={LINES: NEW_LINES}, deployment="v2")
    create(timed, NEW_FIRST, NEW_LINES, details=to_json(redirected))
    first, lines = (
        Green(name, "v2", original, {}, START, role=Role.EXCHANGE)
        for name, original in ((NEW_FIRST, FIRST), (NEW_LINES, LINES))
    )
    tables, reads = {t.name: t for t in timed.stream_tables()}, timed.dependencies()
    refuse_torn([first], [first], reads)
    with pytest.raises(UserError, match="DEPLOYMENT_TORN") as error:
        refuse_left_behind([first], tables, reads)
    assert str(NEW_LINES) in error.value.message
    refuse_left_behind([first, lines], tables, reads)
    refuse_left_behind([lines], tables, reads)
