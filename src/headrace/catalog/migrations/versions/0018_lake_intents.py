"""Publications that are being shown in a lake that another server keeps."""

import sqlalchemy as sa
from alembic import op

from headrace.catalog.schema import JSON, UtcTime

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.create_table(
        "hr_lake_intent",
        sa.Column("uuid", sa.String(64), primary_key=True),
        sa.Column("created_at", UtcTime, nullable=False),
        sa.Column("publication_json", JSON, nullable=False),
        sa.Column("moves_json", JSON, nullable=False),
    )
    op.create_table("hr_lake", sa.Column("identity", sa.String(500), primary_key=True))
