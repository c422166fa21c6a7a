"""Schedulers, pauses, retries, epochs of groups, events; options of stream tables."""

import sqlalchemy as sa
from alembic import op

from headrace.catalog.schema import BIG_ID, JSON, UtcTime

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("hr_stream_table", sa.Column("options_json", JSON))
    _care()
    _groups()
    _schedulers()
    _events()


def _care() -> None:
    op.create_table(
        "hr_care",
        sa.Column("stream_id", BIG_ID, nullable=False, autoincrement=False),
        sa.Column("paused_at", UtcTime),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("retry_at", UtcTime),
        sa.Column("suspended_at", UtcTime),
        sa.Column("error_code", sa.String(64)),
        sa.Column("error_message", sa.Text),
        sa.PrimaryKeyConstraint("stream_id", name="pk_hr_care"),
        sa.ForeignKeyConstraint(["stream_id"], ["hr_stream_table.relation_id"], name="fk_hr_care_stream_id"),
    )


def _groups() -> None:
    op.create_table(
        "hr_group",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("publication_id", BIG_ID, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_hr_group"),
        sa.ForeignKeyConstraint(["publication_id"], ["hr_publication.id"], name="fk_hr_group_publication_id"),
    )


def _schedulers() -> None:
    op.create_table(
        "hr_scheduler",
        sa.Column("owner", sa.String(255), nullable=False),
        sa.Column("started_at", UtcTime, nullable=False),
        sa.Column("expires_at", UtcTime, nullable=False),
        sa.Column("draining", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("owner", name="pk_hr_scheduler"),
    )


def _events() -> None:
    op.create_table(
        "hr_event",
        sa.Column("id", BIG_ID, nullable=False),
        sa.Column("at", UtcTime, nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("fields_json", JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_hr_event"),
        sqlite_autoincrement=True,
    )
