"""Summaries of definitions: the fields read of all of them, apart from the long rest."""

import json
import zlib

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"

_KEYS = ("refusals", "layout", "cyclic", "deployment")


def upgrade() -> None:
    op.add_column("hr_stream_table", sa.Column("summary_json", sa.JSON(none_as_null=True)))
    op.add_column("hr_stream_table", sa.Column("summary_checksum", sa.BigInteger))
    connection = op.get_bind()
    texts = sa.text("SELECT relation_id, CAST(definition_json AS TEXT) FROM hr_stream_table")
    filled = sa.text(
        "UPDATE hr_stream_table SET summary_json = :summary, summary_checksum = :checksum WHERE relation_id = :own"
    ).bindparams(sa.bindparam("summary", type_=sa.JSON))
    found = [
        {"summary": summary, "checksum": zlib.crc32(text.encode(), zlib.crc32(" ".join(_KEYS).encode())), "own": own}
        for own, text in connection.execute(texts).all()
        if (summary := _summary(text)) is not None
    ]
    if found:
        connection.execute(filled, found)


def _summary(text: str) -> dict[str, object] | None:
    """Return a definition's summary; None where it cannot be read, which its readers tell."""
    try:
        details = json.loads(text)
    except ValueError:
        return None
    return {key: details[key] for key in _KEYS if key in details} if isinstance(details, dict) else None
