"""Aggregates at the root, maintained by accumulators.

In come aggregate calls and the change of their input. Out go the companion's columns and the change of the groups
shown.
"""
