"""A profile: which project, which namespace."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbt.adapters.contracts.connection import Credentials
from dbt_common.exceptions import DbtRuntimeError

from headrace.suggestions import did_you_mean

KEYS = ("project", "schema", "serve")


@dataclass
class HeadraceCredentials(Credentials):
    """The settings of a profile.

    There is no setting of Spark's here: what changes results is in the project's headrace.toml.

    Args:
        database: Always None: names are `schema.table`, in the catalog `lake`.
        schema: The namespace that models are built in.
        project: The Headrace project's folder; relative to the dbt project's.
        serve: Have the project's server run statements, in place of a Spark of dbt's own.
    """

    database: str | None = None
    schema: str | None = None
    project: str | None = None
    serve: bool = False

    @classmethod
    def __pre_deserialize__(cls, data: dict[Any, Any]) -> dict[Any, Any]:
        """Let `database` be left out, and refuse keys that there are none of."""
        data = super().__pre_deserialize__(data)
        if unknown := sorted(set(data) - {*KEYS, "database"}):
            raise DbtRuntimeError(
                f"The profile has `{unknown[0]}`, which dbt-headrace does not know. {did_you_mean(unknown[0], KEYS)}"
                f"Its keys are {', '.join(KEYS)}; settings of Spark are in [spark] of the project's headrace.toml."
            )
        return {"database": None, **data}

    def __post_init__(self) -> None:
        for key, example in (("project", "/home/me/shop"), ("schema", "shop")):
            if not getattr(self, key):
                raise DbtRuntimeError(f"The profile has no `{key}`. Add one, for example `{key}: {example}`.")
        if self.database not in (None, "lake"):
            raise DbtRuntimeError(
                f"The profile says `database: {self.database}`. Remove it: models are built in the catalog `lake`."
            )
        self.database = None

    @property
    def root(self) -> Path:
        """Return the project's folder."""
        return Path(self.project or ".").expanduser().absolute()

    @property
    def type(self) -> str:
        """Return what profiles call this adapter."""
        return "headrace"

    @property
    def unique_field(self) -> str:
        """Return what dbt may count users by, which it hashes."""
        return str(self.root)

    def _connection_keys(self) -> tuple[str, ...]:
        return KEYS
