"""${message}."""

import sqlalchemy as sa
from alembic import op

from headrace.catalog.schema import BIG_ID, JSON, UtcTime

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}
