"""New stream tables, and some to be dropped, as members of deployments."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("hr_green", sa.Column("role", sa.String(16), nullable=False, server_default="exchange"))
    op.add_column("hr_green", sa.Column("public_name", sa.Text))
