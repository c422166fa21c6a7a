"""Gives users the `Headrace` object and everything that hangs on it.

In come names, queries and options from Python, the command line or statements. Out go plain results
(`headrace.results`); the work itself is done by the rooms below. Door: `facade`; its verbs are in a file per subject.
"""
