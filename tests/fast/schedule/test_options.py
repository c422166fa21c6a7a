"""Properties that say how a stream table is scheduled."""

import pytest

from headrace.errors import UserError
from headrace.schedule.options import Consistency, Options, Policy, parse_options


def test_they_are_read_in_any_case():
    texts = {"TIER": " Cold ", "timeout": "5 min", "pool": "finance", "diamond_consistency": "NONE"}
    options = parse_options({**texts, "diamond_schedule_policy": "slowest"})
    assert options == Options("cold", "finance", 300, Consistency.NONE, Policy.SLOWEST)
    assert options.factor == 10
    assert parse_options({}).factor == 1
    assert parse_options({"tier": "frozen"}).factor is None


def test_fuses_are_read():
    assert parse_options({"fuse_ceiling": "100000", "FUSE_FACTOR": "2.5"}) == Options(
        fuse_ceiling=100_000, fuse_factor=2.5
    )
    assert parse_options({"fuse_ceiling": "None", "fuse_factor": "none"}) == Options(fuse_ceiling=0, fuse_factor=0.0)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"fuse_ceiling": "0"}, "0"),
        ({"fuse_ceiling": "-5"}, "-5"),
        ({"fuse_ceiling": "1e9"}, "1e9"),
        ({"fuse_ceiling": "9" * 5000}, "999"),
        ({"fuse_factor": "0.5"}, "0.5"),
        ({"fuse_factor": "nan"}, "nan"),
        ({"fuse_factor": "-2"}, "-2"),
        ({"teir": "hot"}, "teir"),
        ({"tier": "boiling"}, "boiling"),
        ({"timeout": "soon"}, "soon"),
        ({"timeout": "0 s"}, "0 s"),
        ({"diamond_consistency": "maybe"}, "maybe"),
        ({"diamond_schedule_policy": ""}, "''"),
    ],
)
def test_what_is_none_is_refused(texts, words):
    with pytest.raises(UserError, match="INVALID_OPTION") as caught:
        parse_options(texts)
    assert words in caught.value.message
    assert caught.value.hint
