"""An index that has the states of all stream tables, without their long rows."""

from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    op.create_index("ix_hr_stream_table_state", "hr_stream_table", ["relation_id", "text_state"])
