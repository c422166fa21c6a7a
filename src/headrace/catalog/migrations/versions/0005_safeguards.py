"""Fuses, and what was skipped because of one; gates; watermarks."""

import sqlalchemy as sa
from alembic import op

from headrace.catalog.schema import BIG_ID, JSON, UtcTime

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    _fuses()
    _gates()
    _watermarks()


def _fuses() -> None:
    for column in (
        sa.Column("fuse_at", UtcTime),
        sa.Column("fuse_json", JSON),
        sa.Column("skipped_at", UtcTime),
        sa.Column("skipped_rows", sa.BigInteger),
    ):
        op.add_column("hr_care", column)


def _gates() -> None:
    op.create_table(
        "hr_gate",
        sa.Column("relation_id", BIG_ID, nullable=False, autoincrement=False),
        sa.Column("closed_at", UtcTime, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("relation_id", name="pk_hr_gate"),
        sa.ForeignKeyConstraint(["relation_id"], ["hr_relation.id"], name="fk_hr_gate_relation_id"),
    )


def _watermarks() -> None:
    op.create_table(
        "hr_watermark_group",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("tolerance_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_hr_watermark_group"),
    )
    op.create_table(
        "hr_watermark",
        sa.Column("relation_id", BIG_ID, nullable=False, autoincrement=False),
        sa.Column("group_name", sa.Text, nullable=False),
        sa.Column("complete_until", UtcTime),
        sa.Column("advanced_at", UtcTime),
        sa.PrimaryKeyConstraint("relation_id", name="pk_hr_watermark"),
        sa.ForeignKeyConstraint(["relation_id"], ["hr_relation.id"], name="fk_hr_watermark_relation_id"),
        sa.ForeignKeyConstraint(["group_name"], ["hr_watermark_group.name"], name="fk_hr_watermark_group_name"),
    )
