"""Schedules and groups of a project, as its users run and see them.

In come settings and the catalog. Out go a running scheduler, groups, logged events, and the status of tables with what
their schedules make of them.
"""
