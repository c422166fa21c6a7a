"""Runs migrations on the connection, and in the transaction, of whoever opens the catalog."""

from alembic import context

from headrace.catalog.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    transactional_ddl=True,
)
context.run_migrations()
