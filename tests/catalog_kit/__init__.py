"""What the catalog's tests share: databases to run on, an Iceberg that only moves pointers, a clock, children to kill."""
