"""Sinks: databases that stream tables are written to."""

import sqlalchemy as sa
from alembic import op

from headrace.catalog.schema import BIG_ID, JSON, UtcTime

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.create_table(
        "hr_sink",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("uuid", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("relation_id", BIG_ID, nullable=False),
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
        sa.PrimaryKeyConstraint("id", name="pk_hr_sink"),
        sa.UniqueConstraint("name", name="uq_hr_sink_name"),
        sa.ForeignKeyConstraint(["relation_id"], ["hr_relation.id"], name="fk_hr_sink_relation_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_hr_sink_relation_id", "hr_sink", ["relation_id"])
