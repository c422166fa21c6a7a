"""A process that publishes into a REST catalog and is killed at a step.

Its arguments: the catalog's URL, the server's URI, the folder of staged tables, the step.
"""

from __future__ import annotations

import datetime as dt
import os
import signal
import sys
from collections.abc import Sequence

from headrace.catalog import Catalog, resource_of
from headrace.lake.rest.http_api import HttpApi, Json
from headrace.lake.rest.rest_lake import RestLake
from headrace.lakes.lake_server import Key, LakeMove
from headrace.lakes.lake_settings import LakeSettings
from headrace.names import LAKE, TableName
from kit.staged_tables import StagedTables, publication

OWNER = "killed"


class DyingApi(HttpApi):
    """An API whose process dies before or after a commit of some kind."""

    def __init__(self, settings: LakeSettings, step: str) -> None:
        super().__init__(settings)
        self._step = step

    def commit(self, path: str, body: Json) -> Json:
        """Send a change, and die."""
        kind = path.rsplit("/", 1)[-1] if path.endswith(("register", "commit")) else "table"
        if self._step == f"before {kind}":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = super().commit(path, body)
        if self._step == f"after {kind}":
            os.kill(os.getpid(), signal.SIGKILL)
        return answer


class DyingLake(RestLake):
    """A lake whose process dies before it is asked, or when all is shown and nothing confirmed."""

    def __init__(self, api: HttpApi, step: str) -> None:
        super().__init__(api)
        self._step = step

    def move(self, publication: str, moves: Sequence[LakeMove]) -> dict[Key, str]:
        """Show staged contents, and die."""
        if self._step == "after intent":
            os.kill(os.getpid(), signal.SIGKILL)
        shown = super().move(publication, moves)
        if self._step == "before confirmation":
            os.kill(os.getpid(), signal.SIGKILL)
        return shown


def main(url: str, uri: str, folder: str, step: str) -> None:
    """Publish `shop.a` and `shop.b` as 1, 2, 3, with what is new besides; die at the step."""
    catalog = Catalog.open(url, lake=DyingLake(DyingApi(LakeSettings(uri), step), step))
    names = [TableName(LAKE, ("shop",), table) for table in ("a", "b", "c") if table != "c" or "register" in step]
    leases = catalog.acquire([resource_of(name) for name in names], OWNER, dt.timedelta(hours=1))
    made = publication(catalog, StagedTables(url, f"file://{folder}"), {name: (1, 2, 3) for name in names}, leases)
    catalog.publish(made)


if __name__ == "__main__":
    main(*sys.argv[1:])
