"""The catalog in SQLite or PostgreSQL: definitions, versions, leases, publishing.

In come names, records and publications; out go frozen records, each read in a transaction of its own. `Catalog` is
the door, and alone knows SQLAlchemy.
"""

from headrace.catalog.definitions.declared_keys import DeclaredKey
from headrace.catalog.definitions.deployments import AutoDeployment
from headrace.catalog.facade import Catalog
from headrace.catalog.publishing.publication import (
    FrontierMove,
    LogChange,
    NewVersion,
    Publication,
    Rename,
    Stop,
    Swap,
    new_uuid,
)
from headrace.catalog.records import (
    Definition,
    EventRecord,
    ForeignWrite,
    Green,
    GroupEpoch,
    HistoryEntry,
    Json,
    LastRefresh,
    Lease,
    Observation,
    Outcome,
    Pointer,
    PublicationRecord,
    RanAs,
    Reached,
    RefreshMode,
    Relation,
    RelationKind,
    Role,
    SchedulerRecord,
    SchedulingState,
    Status,
    StreamTable,
    Version,
    resource_of,
)
from headrace.catalog.safeguards.gates import Gate
from headrace.catalog.safeguards.watermarks import WatermarkGroup
from headrace.catalog.sinks.sink_rows import Sink, SinkFailure, SinkStatus
from headrace.catalog.sources.database_sources import DatabaseSource, Mirror, SourceMove, SourceStatus
from headrace.catalog.sources.source_health import SourceFailure

__all__ = [
    "AutoDeployment",
    "Catalog",
    "DatabaseSource",
    "DeclaredKey",
    "Definition",
    "EventRecord",
    "ForeignWrite",
    "FrontierMove",
    "Gate",
    "Green",
    "GroupEpoch",
    "HistoryEntry",
    "Json",
    "LastRefresh",
    "Lease",
    "LogChange",
    "Mirror",
    "NewVersion",
    "Observation",
    "Outcome",
    "Pointer",
    "Publication",
    "PublicationRecord",
    "RanAs",
    "Reached",
    "RefreshMode",
    "Relation",
    "RelationKind",
    "Rename",
    "Role",
    "SchedulerRecord",
    "SchedulingState",
    "Sink",
    "SinkFailure",
    "SinkStatus",
    "SourceFailure",
    "SourceMove",
    "SourceStatus",
    "Status",
    "Stop",
    "StreamTable",
    "Swap",
    "Version",
    "WatermarkGroup",
    "new_uuid",
    "resource_of",
]
