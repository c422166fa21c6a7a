"""The command line: a thin verb per action, a renderer per result. The only place that knows Rich.

In come words of a shell; out go printed results, JSON where asked for, and exit codes. Door: `main`.
"""
