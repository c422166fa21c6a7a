"""What keeps changes back: fuses, and what was skipped because of one; gates."""

import sqlalchemy as sa
from alembic import op

from headrace.catalog.schema import BIG_ID, JSON, UtcTime

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    _fuses()
    _gates()


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
