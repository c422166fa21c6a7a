"""The command line: a thin verb per action, a renderer per result; the only user of Rich.

In come words of a shell; out go printed results, JSON where asked for, and exit codes. Door: `main`.
"""
