"""Claims of schedulers on the slots and pools that they share."""

import sqlalchemy as sa
from alembic import op

from headrace.catalog.schema import JSON

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("hr_scheduler", sa.Column("claim_json", JSON))
