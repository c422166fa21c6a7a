"""Sources of which snapshots are pinned, and the project's mark in the names of the pins.

What was read so far may have pins, also what nobody reads any more.
"""

import uuid

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    op.create_table(
        "hr_pinned",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("mark", sa.String(8), nullable=False),
    )
    read = sa.text(
        "INSERT INTO hr_pinned (name, mark) SELECT name, :mark FROM hr_relation WHERE kind = 'source'"
        " AND name <> :clock AND id NOT IN (SELECT relation_id FROM hr_mirror)"
    )
    op.get_bind().execute(read, {"mark": uuid.uuid4().hex[:8], "clock": "lake._headrace.clock"})
