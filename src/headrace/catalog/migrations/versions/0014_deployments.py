"""Deployments that promote themselves, and watches over what was promoted."""

import sqlalchemy as sa
from alembic import op

from headrace.catalog.schema import JSON, UtcTime

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.create_table(
        "hr_deployment",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("conditions_json", JSON, nullable=False),
        sa.Column("set_at", UtcTime, nullable=False),
        sa.Column("tried_at", UtcTime),
        sa.Column("refused_code", sa.String(64)),
        sa.Column("refused_reason", sa.Text),
        sa.PrimaryKeyConstraint("name", name="pk_hr_deployment"),
    )
    op.add_column("hr_green", sa.Column("watch_json", JSON))
    op.add_column("hr_green", sa.Column("load_json", JSON))
