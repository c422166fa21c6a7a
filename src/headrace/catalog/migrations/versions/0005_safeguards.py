"""What keeps changes back: fuses, and what was skipped because of one."""

import sqlalchemy as sa
from alembic import op

from headrace.catalog.schema import JSON, UtcTime

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    for column in (
        sa.Column("fuse_at", UtcTime),
        sa.Column("fuse_json", JSON),
        sa.Column("skipped_at", UtcTime),
        sa.Column("skipped_rows", sa.BigInteger),
    ):
        op.add_column("hr_care", column)
