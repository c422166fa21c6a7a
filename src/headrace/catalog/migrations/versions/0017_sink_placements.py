"""Sinks: where a target's rows are, as far as it was looked at."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.add_column("hr_sink", sa.Column("placement", sa.Text))
