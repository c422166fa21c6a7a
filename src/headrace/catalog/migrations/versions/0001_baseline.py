"""Definitions, versions, frontiers, publications, history, leases; Iceberg's tables."""

import sqlalchemy as sa
from alembic import op

from headrace.catalog.schema import BIG_ID, ICEBERG_DDL, JSON, UtcTime

revision = "0001"
down_revision = None


def upgrade() -> None:
    _iceberg()
    _relations()
    _publications()
    _versions()
    _leases()


def _iceberg() -> None:
    there = sa.inspect(op.get_bind()).get_table_names()
    for name, ddl in ICEBERG_DDL.items():
        if name not in there:
            op.execute(ddl)


def _relations() -> None:
    op.create_table(
        "hr_relation",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("catalog_name", sa.Text, nullable=False),
        sa.Column("table_namespace", sa.Text, nullable=False),
        sa.Column("table_name", sa.Text, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("table_uuid", sa.String(64)),
        sa.Column("schema_json", JSON),
        sa.PrimaryKeyConstraint("id", name="pk_hr_relation"),
        sa.UniqueConstraint("name", name="uq_hr_relation_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "hr_stream_table",
        sa.Column("relation_id", BIG_ID, nullable=False, autoincrement=False),
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
        sa.PrimaryKeyConstraint("relation_id", name="pk_hr_stream_table"),
        sa.ForeignKeyConstraint(["relation_id"], ["hr_relation.id"], name="fk_hr_stream_table_relation_id"),
    )
    _between("hr_dependency", sa.Column("position", sa.Integer, nullable=False))
    _between("hr_frontier", sa.Column("version", sa.BigInteger, nullable=False))


def _between(table: str, value: sa.Column[int]) -> None:
    """Create a table of values from stream tables to their sources."""
    op.create_table(
        table,
        sa.Column("stream_id", BIG_ID, nullable=False),
        sa.Column("source_id", BIG_ID, nullable=False),
        value,
        sa.PrimaryKeyConstraint("stream_id", "source_id", name=f"pk_{table}"),
        sa.ForeignKeyConstraint(["stream_id"], ["hr_stream_table.relation_id"], name=f"fk_{table}_stream_id"),
        sa.ForeignKeyConstraint(["source_id"], ["hr_relation.id"], name=f"fk_{table}_source_id"),
    )
    op.create_index(f"ix_{table}_source_id", table, ["source_id"])


def _publications() -> None:
    op.create_table(
        "hr_publication",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("uuid", sa.String(64), nullable=False),
        sa.Column("published_at", UtcTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_hr_publication"),
        sa.UniqueConstraint("uuid", name="uq_hr_publication_uuid"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "hr_history",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("stream_id", BIG_ID),
        sa.Column("stream_name", sa.Text, nullable=False),
        sa.Column("publication_id", BIG_ID),
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
        sa.PrimaryKeyConstraint("id", name="pk_hr_history"),
        sa.ForeignKeyConstraint(["publication_id"], ["hr_publication.id"], name="fk_hr_history_publication_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_hr_history_stream_name", "hr_history", ["stream_name"])


def _versions() -> None:
    op.create_table(
        "hr_version",
        sa.Column("relation_id", BIG_ID, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False, autoincrement=False),
        sa.Column("snapshot_id", sa.BigInteger),
        sa.Column("row_count", sa.BigInteger),
        sa.Column("committed_at", UtcTime, nullable=False),
        sa.Column("publication_id", BIG_ID),
        sa.Column("table_uuid", sa.String(64)),
        sa.PrimaryKeyConstraint("relation_id", "version", name="pk_hr_version"),
        sa.ForeignKeyConstraint(["relation_id"], ["hr_relation.id"], name="fk_hr_version_relation_id"),
        sa.ForeignKeyConstraint(["publication_id"], ["hr_publication.id"], name="fk_hr_version_publication_id"),
        sa.CheckConstraint("version >= 0", name="ck_hr_version_version"),
    )
    op.create_index("ix_hr_version_publication_id", "hr_version", ["publication_id"])


def _leases() -> None:
    op.create_table(
        "hr_lease",
        sa.Column("resource", sa.Text, nullable=False),
        sa.Column("owner", sa.Text),
        sa.Column("token", sa.BigInteger, nullable=False),
        sa.Column("expires_at", UtcTime, nullable=False),
        sa.Column("heartbeat_at", UtcTime, nullable=False),
        sa.PrimaryKeyConstraint("resource", name="pk_hr_lease"),
    )
