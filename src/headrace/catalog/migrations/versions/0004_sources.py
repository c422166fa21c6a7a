"""Database sources and their mirrors."""

import sqlalchemy as sa
from alembic import op

from headrace.catalog.schema import BIG_ID, JSON, UtcTime

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "hr_source",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("options_json", JSON, nullable=False),
        sa.Column("position_json", JSON),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("stopped_code", sa.String(64)),
        sa.Column("stopped_reason", sa.Text),
        sa.Column("landed_at", UtcTime),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_hr_source"),
        sa.UniqueConstraint("name", name="uq_hr_source_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "hr_mirror",
        sa.Column("relation_id", BIG_ID, nullable=False),
        sa.Column("source_id", BIG_ID, nullable=False),
        sa.Column("log", sa.Text, nullable=False),
        sa.Column("details_json", JSON),
        sa.Column("gone", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("relation_id", name="pk_hr_mirror"),
        sa.ForeignKeyConstraint(["relation_id"], ["hr_relation.id"], name="fk_hr_mirror_relation_id"),
        sa.ForeignKeyConstraint(["source_id"], ["hr_source.id"], name="fk_hr_mirror_source_id"),
    )
    op.create_index("ix_hr_mirror_source_id", "hr_mirror", ["source_id"])
