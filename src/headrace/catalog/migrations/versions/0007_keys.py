"""Keys of sources that users declare."""

import sqlalchemy as sa
from alembic import op

from headrace.catalog.schema import BIG_ID, UtcTime

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "hr_key",
        sa.Column("relation_id", BIG_ID, nullable=False, autoincrement=False),
        sa.Column("columns", sa.Text, nullable=False),
        sa.Column("declared_at", UtcTime, nullable=False),
        sa.PrimaryKeyConstraint("relation_id", "columns", name="pk_hr_key"),
        sa.ForeignKeyConstraint(["relation_id"], ["hr_relation.id"], name="fk_hr_key_relation_id"),
    )
