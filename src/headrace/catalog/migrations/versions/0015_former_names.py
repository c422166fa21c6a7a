"""Names that relations had before, under which their older history is written."""

import sqlalchemy as sa
from alembic import op

from headrace.catalog.schema import JSON

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.add_column("hr_relation", sa.Column("former_json", JSON))
