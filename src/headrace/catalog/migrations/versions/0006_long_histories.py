"""Indexes for frequent queries over catalogs with hundreds of thousands of refreshes."""

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.drop_index("ix_hr_history_stream_name", "hr_history")
    op.create_index("ix_hr_history_stream_name", "hr_history", ["stream_name", "id"])
    op.create_index("ix_hr_version_committed_at", "hr_version", ["committed_at"])
    op.create_index("ix_hr_publication_published_at", "hr_publication", ["published_at"])
