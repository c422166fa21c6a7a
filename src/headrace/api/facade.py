"""The door: `headrace.open()` and `Headrace`, whose verbs are in a file per subject."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace import config
from headrace.api.deploying.deploy_verbs import DeployVerbs
from headrace.api.explaining import ExplainVerbs
from headrace.api.inspecting import InspectVerbs
from headrace.api.repairing import RepairVerbs
from headrace.api.safeguarding import SafeguardVerbs
from headrace.api.scheduling import ScheduleVerbs
from headrace.api.tables import TableVerbs
from headrace.project.moved_project import refuse_moved

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.statements.parsed_statements import Statement


def open(path_or_settings: str | Path | config.Settings = ".", *, spark: SparkSession | None = None) -> Headrace:
    """Open a project.

    Args:
        path_or_settings: The project folder (or its headrace.toml), or settings made by hand.
        spark: A session to use instead of starting one; it must have the catalogs `lake` and `staging`.

    A project's catalog must exist (`headrace init` makes it): an empty one in place of one that was lost would look
    like a project without stream tables. Settings made by hand name a catalog that is made when it is missing.

    Raises:
        UserError: `PROJECT_NOT_FOUND`, `CONFIG_INVALID`, `PROJECT_MOVED`, `PROJECT_COPIED`.
        EnvironmentFault: The catalog cannot be opened; `CATALOG_UNREACHABLE` when there is none.
    """
    if isinstance(path_or_settings, config.Settings):
        return Headrace(path_or_settings, spark=spark)
    found = Headrace(config.load(path_or_settings), spark=spark, create=False)
    try:
        refuse_moved(found.settings, found._catalog)
    except BaseException:
        found.close()
        raise
    return found


class Headrace(TableVerbs, DeployVerbs, SafeguardVerbs, ScheduleVerbs, InspectVerbs, ExplainVerbs, RepairVerbs):
    """A project: its catalog, its stream tables and, once needed, its Spark session.

    Args:
        settings: Where everything is.
        spark: A session to use; one is started at first use otherwise.
        create: Make the catalog if there is none.

    Attributes:
        settings: Where everything is.
        events: Tells what happens; `events.subscribe(listener)`.
    """

    def sql(self, text: str) -> Any:
        """Run statements; those about stream tables here, every other one in Spark.

        Returns:
            The last statement's result: a DataFrame for Spark's, else what the method of that name returns.

        Raises:
            UserError: `MANAGED_TABLE` for a statement of Spark's that would change a stream table.
        """
        last: Any = None
        for _, result in self.statements(text):
            last = result
        return last

    def statements(self, text: str) -> Iterator[tuple[Statement, Any]]:
        """Run a script statement by statement, yielding each with its result."""
        from headrace.statements.grammar import parse_script
        from headrace.statements.run_statement import run_statement

        for statement in parse_script(text):
            yield statement, run_statement(self, statement, text)
