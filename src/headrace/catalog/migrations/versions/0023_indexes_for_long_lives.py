"""Indexes by which old publications and rare events are found among many."""

from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    op.create_index("ix_hr_history_publication_id", "hr_history", ["publication_id"])
    op.create_index("ix_hr_event_kind", "hr_event", ["kind", "id"])
