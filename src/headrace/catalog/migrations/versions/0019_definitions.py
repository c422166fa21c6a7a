"""Names of the states that definitions are in, of each one and of all together."""

import uuid

import sqlalchemy as sa
from alembic import op

from headrace.catalog.schema import BIG_ID

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    table = op.create_table(
        "hr_definitions",
        sa.Column("id", BIG_ID, primary_key=True, autoincrement=False),
        sa.Column("state", sa.String(32), nullable=False),
    )
    op.bulk_insert(table, [{"id": 1, "state": uuid.uuid4().hex}])
    op.add_column("hr_stream_table", sa.Column("text_state", sa.String(32), nullable=False, server_default=""))
    connection = op.get_bind()
    for own in connection.execute(sa.text("SELECT relation_id FROM hr_stream_table")).scalars().all():
        named = sa.text("UPDATE hr_stream_table SET text_state = :state WHERE relation_id = :own")
        connection.execute(named, {"state": uuid.uuid4().hex, "own": own})
