"""Second generations of stream tables, beside the public ones."""

import sqlalchemy as sa
from alembic import op

from headrace.catalog.schema import BIG_ID, JSON, UtcTime

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.create_table(
        "hr_green",
        sa.Column("relation_id", BIG_ID, nullable=False, autoincrement=False),
        sa.Column("deployment", sa.Text, nullable=False),
        sa.Column("blue_id", BIG_ID, nullable=False),
        sa.Column("blue_json", JSON, nullable=False),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("promoted_at", UtcTime),
        sa.Column("keep_until", UtcTime),
        sa.PrimaryKeyConstraint("relation_id", name="pk_hr_green"),
        sa.ForeignKeyConstraint(["relation_id"], ["hr_relation.id"], name="fk_hr_green_relation_id"),
        sa.ForeignKeyConstraint(["blue_id"], ["hr_relation.id"], name="fk_hr_green_blue_id"),
        sa.UniqueConstraint("blue_id", name="uq_hr_green_blue_id"),
    )
