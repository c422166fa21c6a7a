"""The test kit: random schemas, queries and histories, and the check that maintenance equals recomputation.

Generation knows no engine; `Executor` is what an engine must offer. DuckDB is one (fast), Spark another (the judge).
"""
