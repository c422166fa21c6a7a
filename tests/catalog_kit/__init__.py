"""What the catalog's tests share: databases, an Iceberg that only moves pointers, a clock, children to kill."""
