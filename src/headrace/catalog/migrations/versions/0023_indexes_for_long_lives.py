"""Indexes by which publications and rare events are found; turns in maintenance."""

import sqlalchemy as sa
from alembic import op

from headrace.catalog.schema import UtcTime

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    op.create_index("ix_hr_history_publication_id", "hr_history", ["publication_id"])
    op.create_index("ix_hr_event_kind", "hr_event", ["kind", "id"])
    op.create_table(
        "hr_maintained",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("at", UtcTime, nullable=False),
    )
