"""The TPC-H demonstration; its data, changes and queries serve the benchmarks, too.

In come a folder and a scale; out go a project with data, stream tables, and figures of what refreshing cost.
"""
