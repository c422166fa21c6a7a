"""Asks a server to run a command, with the standard library only, and little of that.

In come words of a shell; out goes an exit status, or nothing where the command must run in its own process.
"""
