"""Looks at a captured server: backlog, slots, room, reasons to stop.

In comes a connection or what was remembered of earlier looks. Out go findings with remedies; nothing is changed on
the server.
"""
