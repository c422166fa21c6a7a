"""The adapter's version, which `dbt --version` shows."""

version = "0.1.0"
