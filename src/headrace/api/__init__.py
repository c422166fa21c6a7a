"""Gives users the `Headrace` object and everything that hangs on it.

In come names, queries and options from Python, the command line or statements. Out go plain results
(`headrace.results`); the work itself is done by the rooms below. Doors: `facade`, `database_sources`, `running`.
"""
