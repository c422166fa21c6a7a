"""What a session is, by which rows are kept in one way or another."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headrace.spark.session_kind import SessionKind, kind_of


@pytest.mark.parametrize(
    ("master", "kind"),
    [
        ("local", SessionKind.LOCAL),
        ("local[*]", SessionKind.LOCAL),
        ("local-cluster[2,1,1024]", SessionKind.CLUSTER),
        ("spark://a:7077", SessionKind.CLUSTER),
        ("yarn", SessionKind.CLUSTER),
        (None, SessionKind.CONNECT),
    ],
)
def test_it_follows_from_the_master(master: str | None, kind: SessionKind) -> None:
    session: Any = SimpleNamespace()
    if master is not None:
        session = SimpleNamespace(_jsc=object(), sparkContext=SimpleNamespace(master=master))
    assert kind_of(session) is kind
    assert kind.keeps
