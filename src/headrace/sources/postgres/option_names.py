"""Names of the options that a PostgreSQL source has, as written, stored, and asked for."""

TEXT_COLUMNS, CAPTURE, FAILOVER = "text_columns", "capture", "failover"
"""Options of a source besides its tables."""

SHARDS, SHARD_COLUMN, AVAILABILITY, SAME_KEY = "shards", "shard_column", "availability", "same_key"
"""And of one with shards."""
