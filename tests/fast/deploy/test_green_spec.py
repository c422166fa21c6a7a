"""What a green inherits of its public stream table."""

from __future__ import annotations

from catalog_kit.samples import REVENUE, create, lake

from headrace.catalog import Catalog
from headrace.deploy.create_green import GreenSpec, spec_of_green


def test_what_is_not_given_stays(timed: Catalog) -> None:
    blue = create(timed, REVENUE, options={"fuse_ceiling": "1000", "pool": "daily"}, schedule="1 hour")
    spec = spec_of_green(GreenSpec(REVENUE, "v2", options={"Pool": "finance"}), blue, lake("shop__v2.revenue"))
    assert (spec.options, spec.schedule) == ({"fuse_ceiling": "1000", "pool": "finance"}, "1 hour")
    new = spec_of_green(GreenSpec(REVENUE, "v2", "SELECT 1 AS x", options={"Pool": "finance"}), None, REVENUE)
    assert (new.query, new.options, new.schedule) == ("SELECT 1 AS x", {"pool": "finance"}, None)
