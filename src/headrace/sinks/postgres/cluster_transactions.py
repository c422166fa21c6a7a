"""Transactions of a Citus cluster that are decided, but not yet done on every node.

Citus commits on the coordinator, and the position with it, then tells workers to commit what they have prepared. When
a node dies in between, a worker shows its former rows until Citus' maintenance makes up for it, a minute later by
default: a sink that read them would take them for a change of somebody else.

Source: Citus, `src/backend/distributed/transaction/README.md`, two-phase commit and its recovery.
"""

from __future__ import annotations

import json
import time

from headrace.errors import EnvironmentFault
from headrace.sinks.postgres.target_connection import Connection

PATIENCE, PAUSE = 5.0, 0.1
"""Seconds to wait for what is decided, and between two looks."""

SETTINGS = {
    "citus.max_intermediate_result_size": "-1",
    "citus.enable_schema_based_sharding": "off",
}
"""Of a transaction: a change may be large, and the schema of positions is no tenant of its own."""

_SET = "SELECT set_config(name, %s, true) FROM pg_catalog.pg_settings WHERE name = %s"

_PREPARED = """
SELECT success, result FROM pg_catalog.run_command_on_all_nodes($$
  SELECT coalesce(json_agg(gid), '[]')::text FROM pg_catalog.pg_prepared_xacts
  WHERE database = current_database() AND gid LIKE 'citus\\_%'
$$)
"""

_DECIDED = "SELECT 1 FROM pg_catalog.pg_dist_transaction WHERE gid = ANY(%s) LIMIT 1"


def prepare(connection: Connection) -> None:
    """Make settings of a transaction in a cluster; a plain server has none of them."""
    for name, value in SETTINGS.items():
        connection.execute(_SET, (value, name))


def wait_until_done(connection: Connection) -> None:
    """Wait until every node has committed what the coordinator has.

    Raises:
        EnvironmentFault: `SINK_BUSY` after a while, `SINK_LOST` where a node does not answer; both pass.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        gids: list[str] = []
        for success, result in connection.execute(_PREPARED).fetchall():
            if not success:
                raise EnvironmentFault(
                    "SINK_LOST",
                    "A node of the sink's Citus cluster does not answer; nothing was written.",
                    detail=str(result),
                    hint="Headrace tries again.",
                    retryable=True,
                )
            gids += json.loads(str(result))
        if not gids or connection.execute(_DECIDED, (gids,)).fetchone() is None:
            return
        if time.monotonic() > deadline:
            raise EnvironmentFault(
                "SINK_BUSY",
                "A node of the sink's Citus cluster has not committed yet what is decided; nothing was written.",
                detail="That happens when a node stops in the middle of a transaction.",
                hint="Citus makes up for it within citus.recover_2pc_interval, a minute by default; "
                "Headrace tries again.",
                retryable=True,
            )
        time.sleep(PAUSE)
