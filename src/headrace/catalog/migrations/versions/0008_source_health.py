"""Health of database sources: their last failure, and looks at their slots."""

import sqlalchemy as sa
from alembic import op

from headrace.catalog.schema import JSON

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("hr_source", sa.Column("health_json", JSON))
