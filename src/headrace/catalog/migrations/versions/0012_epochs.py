"""Epochs of groups, kept by member instead of by the name of the last one."""

import sqlalchemy as sa
from alembic import op

from headrace.catalog.relations import parse_name
from headrace.catalog.schema import BIG_ID

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("hr_history", sa.Column("epoch", sa.BigInteger))
    epoch = op.create_table(
        "hr_epoch",
        sa.Column("stream_id", BIG_ID, nullable=False, autoincrement=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("publication_id", BIG_ID, nullable=False),
        sa.PrimaryKeyConstraint("stream_id", name="pk_hr_epoch"),
        sa.ForeignKeyConstraint(["stream_id"], ["hr_stream_table.relation_id"], name="fk_hr_epoch_stream_id"),
        sa.ForeignKeyConstraint(["publication_id"], ["hr_publication.id"], name="fk_hr_epoch_publication_id"),
    )
    connection = op.get_bind()
    streams = "SELECT r.name, r.id FROM hr_relation r JOIN hr_stream_table s ON s.relation_id = r.id"
    ids = {str(parse_name(name)): row_id for name, row_id in connection.execute(sa.text(streams))}
    groups = connection.execute(sa.text("SELECT name, epoch, publication_id FROM hr_group")).all()
    rows = [
        {"stream_id": ids[last], "epoch": number, "publication_id": publication}
        for last, number, publication in groups
        if last in ids  # else the group's last member was dropped, and the group with it
    ]
    if rows:
        connection.execute(sa.insert(epoch), rows)
    op.drop_table("hr_group")
