"""What a command needs to ask a server: standard library only, and little of that.

In come words of a shell; out goes an exit status, or nothing where the command must run in its own process.
"""
