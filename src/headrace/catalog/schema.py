"""The catalog's tables in SQLAlchemy Core; the migrations create them.

Headrace's own tables begin with `hr_`. Iceberg's two tables live beside them in the same database: Iceberg's SQL
catalog owns their shape, so they are in a metadata of their own and no migration alters them.
"""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

VERSION_TABLE = "hr_schema_revision"
"""Alembic's table of the revision; not its default name, for the database may be shared."""

REVISIONS = (
    "0001",
    "0002",
    "0003",
    "0004",
    "0005",
    "0006",
    "0007",
    "0008",
    "0009",
    "0010",
    "0011",
    "0012",
    "0013",
    "0014",
    "0015",
    "0016",
    "0017",
    "0018",
    "0019",
    "0020",
    "0021",
    "0022",
    "0023",
    "0024",
)
"""Every revision this code knows, oldest first. The last one is what it works with."""


def new_state() -> str:
    """Return a name for a state that there has not been."""
    return uuid.uuid4().hex


class UtcTime(sa.types.TypeDecorator[dt.datetime]):
    """An aware time in UTC: `timestamptz` on PostgreSQL, sortable ISO text on SQLite."""

    impl = sa.String(32)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> sa.types.TypeEngine[Any]:
        """Return the column type of each database."""
        if dialect.name == "postgresql":
            return dialect.type_descriptor(sa.DateTime(timezone=True))
        return dialect.type_descriptor(sa.String(32))

    def process_bind_param(self, value: dt.datetime | None, dialect: Dialect) -> Any:
        """Refuse naive times, which would mean something else on every machine."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone")
        value = value.astimezone(dt.UTC)
        return value if dialect.name == "postgresql" else value.isoformat(timespec="microseconds")

    def process_result_value(self, value: Any, dialect: Dialect) -> dt.datetime | None:
        """Return an aware time, whatever the session's time zone."""
        if value is None:
            return None
        return value.astimezone(dt.UTC) if isinstance(value, dt.datetime) else dt.datetime.fromisoformat(value)


BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""SQLite numbers rows by itself only in a column that is exactly INTEGER."""

JSON = sa.JSON(none_as_null=True)
"""Not JSONB: the order of keys (stages in the order they ran) is kept."""

metadata = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
    }
)

relation = sa.Table(
    "hr_relation",
    metadata,
    sa.Column("id", BIG_ID, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("catalog_name", sa.Text, nullable=False),
    sa.Column("table_namespace", sa.Text, nullable=False),
    sa.Column("table_name", sa.Text, nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("table_uuid", sa.String(64)),
    sa.Column("schema_json", JSON),
    sa.Column("former_json", JSON),
    sqlite_autoincrement=True,
)
"""`former_json` lists the names that it had before, under which its older history is written."""

stream_table = sa.Table(
    "hr_stream_table",
    metadata,
    sa.Column("relation_id", BIG_ID, sa.ForeignKey("hr_relation.id"), primary_key=True, autoincrement=False),
    sa.Column("query", sa.Text, nullable=False),
    sa.Column("refresh_mode", sa.String(16), nullable=False),
    sa.Column("schedule", sa.Text),
    sa.Column("definition_json", JSON, nullable=False),
    sa.Column("companion", sa.Text),
    sa.Column("log", sa.Text),
    sa.Column("generation", sa.Integer, nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("stopped_code", sa.String(64)),
    sa.Column("stopped_reason", sa.Text),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
    sa.Column("options_json", JSON),
    sa.Column("companion_behind", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("text_state", sa.String(32), key="state", nullable=False, server_default="", onupdate=new_state),
    sa.Column("summary_json", JSON),
    sa.Column("summary_checksum", sa.BigInteger),
    sa.Index("ix_hr_stream_table_state", "relation_id", "state"),
)
"""`state` is drawn at random whenever a row is written, or names of what it reads, so that who has read it knows.

`summary_json` is the part of `definition_json` that is asked of every stream table; `summary_checksum` tells the text
of `definition_json` that it was made from.
"""

definitions = sa.Table(
    "hr_definitions",
    metadata,
    sa.Column("id", BIG_ID, primary_key=True, autoincrement=False),
    sa.Column("state", sa.String(32), nullable=False),
)
"""One row, with a random name for the state that all stream tables are in; it changes with any of them."""

dependency = sa.Table(
    "hr_dependency",
    metadata,
    sa.Column("stream_id", BIG_ID, sa.ForeignKey("hr_stream_table.relation_id"), primary_key=True),
    sa.Column("source_id", BIG_ID, sa.ForeignKey("hr_relation.id"), primary_key=True, index=True),
    sa.Column("position", sa.Integer, nullable=False),
)

publication = sa.Table(
    "hr_publication",
    metadata,
    sa.Column("id", BIG_ID, primary_key=True),
    sa.Column("uuid", sa.String(64), nullable=False, unique=True),
    sa.Column("published_at", UtcTime, nullable=False, index=True),
    sqlite_autoincrement=True,
)

version = sa.Table(
    "hr_version",
    metadata,
    sa.Column("relation_id", BIG_ID, sa.ForeignKey("hr_relation.id"), primary_key=True),
    sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("snapshot_id", sa.BigInteger),
    sa.Column("row_count", sa.BigInteger),
    sa.Column("committed_at", UtcTime, nullable=False, index=True),
    sa.Column("publication_id", BIG_ID, sa.ForeignKey("hr_publication.id"), index=True),
    sa.Column("table_uuid", sa.String(64)),
    sa.CheckConstraint("version >= 0", name="ck_hr_version_version"),
)

frontier = sa.Table(
    "hr_frontier",
    metadata,
    sa.Column("stream_id", BIG_ID, sa.ForeignKey("hr_stream_table.relation_id"), primary_key=True),
    sa.Column("source_id", BIG_ID, sa.ForeignKey("hr_relation.id"), primary_key=True, index=True),
    sa.Column("version", sa.BigInteger, nullable=False),
)

history = sa.Table(
    "hr_history",
    metadata,
    sa.Column("id", BIG_ID, primary_key=True),
    sa.Column("stream_id", BIG_ID),
    sa.Column("stream_name", sa.Text, nullable=False),
    sa.Column("publication_id", BIG_ID, sa.ForeignKey("hr_publication.id"), index=True),
    sa.Column("started_at", UtcTime, nullable=False),
    sa.Column("finished_at", UtcTime, nullable=False),
    sa.Column("mode", sa.String(16), nullable=False),
    sa.Column("outcome", sa.String(16), nullable=False),
    sa.Column("reason", sa.String(64)),
    sa.Column("reason_detail", sa.Text),
    sa.Column("rows_inserted", sa.BigInteger, nullable=False),
    sa.Column("rows_deleted", sa.BigInteger, nullable=False),
    sa.Column("rows_after", sa.BigInteger),
    sa.Column("stages_json", JSON, nullable=False),
    sa.Column("frontier_json", JSON),
    sa.Column("error_code", sa.String(64)),
    sa.Column("error_message", sa.Text),
    sa.Column("metrics_json", JSON),
    sa.Column("epoch", sa.BigInteger),
    sa.Index("ix_hr_history_stream_name", "stream_name", "id"),
    sqlite_autoincrement=True,
)

lease = sa.Table(
    "hr_lease",
    metadata,
    sa.Column("resource", sa.Text, primary_key=True),
    sa.Column("owner", sa.Text),
    sa.Column("token", sa.BigInteger, nullable=False),
    sa.Column("expires_at", UtcTime, nullable=False),
    sa.Column("heartbeat_at", UtcTime, nullable=False),
)

published = sa.Table(
    "hr_published",
    metadata,
    sa.Column("table_namespace", sa.String(255), primary_key=True),
    sa.Column("table_name", sa.String(255), primary_key=True),
    sa.Column("metadata_location", sa.String(1000), nullable=False),
)
"""Each stored table's `lake` pointer as Headrace last published it; reveals foreign writers."""

care = sa.Table(
    "hr_care",
    metadata,
    sa.Column("stream_id", BIG_ID, sa.ForeignKey("hr_stream_table.relation_id"), primary_key=True, autoincrement=False),
    sa.Column("paused_at", UtcTime),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("retry_at", UtcTime),
    sa.Column("suspended_at", UtcTime),
    sa.Column("error_code", sa.String(64)),
    sa.Column("error_message", sa.Text),
    sa.Column("fuse_at", UtcTime),
    sa.Column("fuse_json", JSON),
    sa.Column("skipped_at", UtcTime),
    sa.Column("skipped_rows", sa.BigInteger),
)
"""Pauses, failures, fuse and skipped rows of a stream table; no row before there were any."""

epoch = sa.Table(
    "hr_epoch",
    metadata,
    sa.Column("stream_id", BIG_ID, sa.ForeignKey("hr_stream_table.relation_id"), primary_key=True, autoincrement=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("publication_id", BIG_ID, sa.ForeignKey("hr_publication.id"), nullable=False),
)
"""The last publication that a stream table had part in as member of a group, and its number."""

scheduler = sa.Table(
    "hr_scheduler",
    metadata,
    sa.Column("owner", sa.String(255), primary_key=True),
    sa.Column("started_at", UtcTime, nullable=False),
    sa.Column("expires_at", UtcTime, nullable=False),
    sa.Column("draining", sa.Boolean, nullable=False),
    sa.Column("claim_json", JSON),
)

event = sa.Table(
    "hr_event",
    metadata,
    sa.Column("id", BIG_ID, primary_key=True),
    sa.Column("at", UtcTime, nullable=False),
    sa.Column("kind", sa.String(64), nullable=False),
    sa.Column("fields_json", JSON, nullable=False),
    sa.Index("ix_hr_event_kind", "kind", "id"),
    sqlite_autoincrement=True,
)
source = sa.Table(
    "hr_source",
    metadata,
    sa.Column("id", BIG_ID, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("options_json", JSON, nullable=False),
    sa.Column("position_json", JSON),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("stopped_code", sa.String(64)),
    sa.Column("stopped_reason", sa.Text),
    sa.Column("landed_at", UtcTime),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("health_json", JSON),
    sqlite_autoincrement=True,
)
"""Databases whose tables are mirrored; `position_json` moves in the publication that lands what it stands for."""

mirror = sa.Table(
    "hr_mirror",
    metadata,
    sa.Column("relation_id", BIG_ID, sa.ForeignKey("hr_relation.id"), primary_key=True, autoincrement=False),
    sa.Column("source_id", BIG_ID, sa.ForeignKey("hr_source.id"), nullable=False, index=True),
    sa.Column("log", sa.Text, nullable=False),
    sa.Column("details_json", JSON),
    sa.Column("gone", sa.Boolean, nullable=False),
)

gate = sa.Table(
    "hr_gate",
    metadata,
    sa.Column("relation_id", BIG_ID, sa.ForeignKey("hr_relation.id"), primary_key=True, autoincrement=False),
    sa.Column("closed_at", UtcTime, nullable=False),
    sa.Column("version", sa.BigInteger, nullable=False),
)
"""Sources that are held back, each at a version."""

key = sa.Table(
    "hr_key",
    metadata,
    sa.Column("relation_id", BIG_ID, sa.ForeignKey("hr_relation.id"), primary_key=True, autoincrement=False),
    sa.Column("columns", sa.Text, primary_key=True),
    sa.Column("declared_at", UtcTime, nullable=False),
)
"""Keys of sources that users declare; columns as a JSON list in order."""

pinned = sa.Table(
    "hr_pinned",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("mark", sa.String(8), nullable=False),
)
"""Sources that have tags of this project, by name: nothing else may be known any more of what nobody reads."""

maintained = sa.Table(
    "hr_maintained",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("at", UtcTime, nullable=False),
)
"""The last turns of tables in maintenance, when they began; without a name, when all had had theirs."""

watermark_group = sa.Table(
    "hr_watermark_group",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("tolerance_ms", sa.BigInteger, nullable=False),
)

watermark = sa.Table(
    "hr_watermark",
    metadata,
    sa.Column("relation_id", BIG_ID, sa.ForeignKey("hr_relation.id"), primary_key=True, autoincrement=False),
    sa.Column("group_name", sa.Text, sa.ForeignKey("hr_watermark_group.name"), nullable=False),
    sa.Column("complete_until", UtcTime),
    sa.Column("advanced_at", UtcTime),
)
"""Up to which moment sources are complete, as their users say; a source is in one group."""

green = sa.Table(
    "hr_green",
    metadata,
    sa.Column("relation_id", BIG_ID, sa.ForeignKey("hr_relation.id"), primary_key=True, autoincrement=False),
    sa.Column("deployment", sa.Text, nullable=False),
    sa.Column("blue_id", BIG_ID, sa.ForeignKey("hr_relation.id"), nullable=False, unique=True),
    sa.Column("blue_json", JSON, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("promoted_at", UtcTime),
    sa.Column("keep_until", UtcTime),
    sa.Column("role", sa.String(16), nullable=False, server_default="exchange"),
    sa.Column("public_name", sa.Text),
    sa.Column("watch_json", JSON),
    sa.Column("load_json", JSON),
)
"""Second generations of stream tables: a green before its promotion, the former blue after it.

What is new or dropped stands beside nothing: `blue_id` is its own, and `public_name` says which name it gets or had.
"""

deployment = sa.Table(
    "hr_deployment",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("conditions_json", JSON, nullable=False),
    sa.Column("set_at", UtcTime, nullable=False),
    sa.Column("tried_at", UtcTime),
    sa.Column("refused_code", sa.String(64)),
    sa.Column("refused_reason", sa.Text),
)
"""Deployments that are to promote themselves, until they are promoted."""

sink = sa.Table(
    "hr_sink",
    metadata,
    sa.Column("id", BIG_ID, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("uuid", sa.String(64), nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("relation_id", BIG_ID, sa.ForeignKey("hr_relation.id"), nullable=False, index=True),
    sa.Column("options_json", JSON, nullable=False),
    sa.Column("schedule", sa.Text),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("version", sa.BigInteger),
    sa.Column("rows", sa.BigInteger),
    sa.Column("written_at", UtcTime),
    sa.Column("stopped_code", sa.String(64)),
    sa.Column("stopped_reason", sa.Text),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("retry_at", UtcTime),
    sa.Column("failure_json", JSON),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("placement", sa.Text),
    sqlite_autoincrement=True,
)
"""Databases that stream tables are written to. `version` is what is known here of the target's own position, which may
be ahead of it, and never behind: change logs are kept from there on."""


lake_intent = sa.Table(
    "hr_lake_intent",
    metadata,
    sa.Column("uuid", sa.String(64), primary_key=True),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("publication_json", JSON, nullable=False),
    sa.Column("moves_json", JSON, nullable=False),
)
"""Publications that are being shown in a lake that another server keeps, written down before and gone once they are
confirmed here."""


lake_home = sa.Table("hr_lake", metadata, sa.Column("identity", sa.String(500), primary_key=True))
"""The server that keeps the lake; no row where it is in this database."""


own_database = sa.Table(
    "hr_own_database",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("identity", sa.String(100), nullable=False),
)
"""The database, or file, that the project was made or last confirmed in, one row; none where that is not known."""


def insert_or_skip(table: sa.Table, *columns: str) -> sa.TextClause:
    """Return an insert of rows that skips those that exist already.

    Both databases write it alike, unlike SQLAlchemy.
    """
    names, values = ", ".join(columns), ", ".join(f":{c}" for c in columns)
    statement = sa.text(f"INSERT INTO {table.name} ({names}) VALUES ({values}) ON CONFLICT DO NOTHING")
    return statement.bindparams(*(sa.bindparam(c, type_=table.c[c].type) for c in columns))


iceberg_metadata = sa.MetaData()

iceberg_tables = sa.Table(
    "iceberg_tables",
    iceberg_metadata,
    sa.Column("catalog_name", sa.String(255), primary_key=True),
    sa.Column("table_namespace", sa.String(255), primary_key=True),
    sa.Column("table_name", sa.String(255), primary_key=True),
    sa.Column("metadata_location", sa.String(1000)),
    sa.Column("previous_metadata_location", sa.String(1000)),
    sa.Column("iceberg_type", sa.String(5)),
)

iceberg_namespaces = sa.Table(
    "iceberg_namespace_properties",
    iceberg_metadata,
    sa.Column("catalog_name", sa.String(255), primary_key=True),
    sa.Column("namespace", sa.String(255), primary_key=True),
    sa.Column("property_key", sa.String(255), primary_key=True),
    sa.Column("property_value", sa.String(1000)),
)

ICEBERG_DDL = {
    "iceberg_tables": (
        "CREATE TABLE iceberg_tables(catalog_name VARCHAR(255) NOT NULL,table_namespace VARCHAR(255) NOT NULL,"
        "table_name VARCHAR(255) NOT NULL,metadata_location VARCHAR(1000),previous_metadata_location VARCHAR(1000), "
        "iceberg_type VARCHAR(5),PRIMARY KEY (catalog_name, table_namespace, table_name))"
    ),
    "iceberg_namespace_properties": (
        "CREATE TABLE iceberg_namespace_properties(catalog_name VARCHAR(255) NOT NULL,namespace VARCHAR(255) NOT NULL,"
        "property_key VARCHAR(255),property_value VARCHAR(1000),PRIMARY KEY (catalog_name, namespace, property_key))"
    ),
}
"""Iceberg's own statements (JDBC catalog, schema version V1), for a database that Iceberg has not seen yet."""
