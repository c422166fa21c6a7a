"""Companions that a FULL refresh left behind."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    behind = sa.Column("companion_behind", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("hr_stream_table", behind)
