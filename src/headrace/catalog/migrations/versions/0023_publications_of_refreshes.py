"""An index that tells of which refresh a publication is: others are forgotten."""

from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    op.create_index("ix_hr_history_publication_id", "hr_history", ["publication_id"])
