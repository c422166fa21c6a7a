"""The interactive prompt: SQL, all verbs of the command line, and a few switches of its own.

In come keys; out go results on the terminal, a pager or a file. Door: `loop.Prompt`.
"""
