"""Creates, replaces, validates and drops stream tables.

In come the user's text and options. Out go stored definitions and first loads; a statement that fails leaves nothing
behind.
"""
