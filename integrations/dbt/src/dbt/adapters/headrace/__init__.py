"""The dbt adapter of Headrace: dbt-spark whose connection is an open Headrace project.

In come dbt's profile, models and statements. Out go stream tables that are created, altered, replaced or refreshed by
Headrace's own API, everything else as Spark SQL in the session that Headrace opened. `Plugin` is what dbt asks for.
"""

from dbt.adapters.base import AdapterPlugin
from dbt.adapters.headrace.credentials import HeadraceCredentials
from dbt.adapters.headrace.impl import HeadraceAdapter
from dbt.include import headrace

Plugin = AdapterPlugin(
    adapter=HeadraceAdapter,
    credentials=HeadraceCredentials,
    include_path=headrace.PACKAGE_PATH,
    dependencies=["spark"],
)
