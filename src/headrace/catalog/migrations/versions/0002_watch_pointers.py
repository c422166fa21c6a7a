"""Measurements per refresh, and last published pointers, which reveal foreign writers."""

import sqlalchemy as sa
from alembic import op

from headrace.catalog.schema import JSON

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("hr_history", sa.Column("metrics_json", JSON))
    op.create_table(
        "hr_published",
        sa.Column("table_namespace", sa.String(255), nullable=False),
        sa.Column("table_name", sa.String(255), nullable=False),
        sa.Column("metadata_location", sa.String(1000), nullable=False),
        sa.PrimaryKeyConstraint("table_namespace", "table_name", name="pk_hr_published"),
    )
    # What is published when the table begins is taken as Headrace's own: all that has a row in both catalogs.
    op.execute(
        "INSERT INTO hr_published (table_namespace, table_name, metadata_location)"
        " SELECT l.table_namespace, l.table_name, l.metadata_location FROM iceberg_tables l JOIN iceberg_tables s"
        " ON s.table_namespace = l.table_namespace AND s.table_name = l.table_name"
        " WHERE l.catalog_name = 'lake' AND s.catalog_name = 'staging' AND l.metadata_location IS NOT NULL"
    )
