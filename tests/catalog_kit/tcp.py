"""PostgreSQL over TCP, as Spark's JDBC driver needs it."""

from __future__ import annotations

import pytest

from catalog_kit.proxy import BreakingProxy


def tcp_url(request: pytest.FixtureRequest) -> str:
    """A fresh PostgreSQL database, reached over TCP as Spark's JDBC driver needs it."""
    server = request.getfixturevalue("postgres")
    proxy = BreakingProxy(server.socket_folder)
    request.addfinalizer(proxy.close)
    name = server.fresh().partition("?")[0].rpartition("/")[2]
    return f"postgresql://postgres@127.0.0.1:{proxy.port}/{name}"
