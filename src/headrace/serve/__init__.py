"""One warm process per project: keeps Spark and compiled views, and runs commands.

In come command lines of this machine's user, over a Unix socket in the project folder; out go what the command prints,
its events and its exit status. `caller/` is what a command needs to ask a server, and imports next to nothing.
"""
