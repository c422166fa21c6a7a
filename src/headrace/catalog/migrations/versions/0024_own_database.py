"""The database that a project was made or last confirmed in."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    op.create_table(
        "hr_own_database",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("identity", sa.String(100), nullable=False),
    )
