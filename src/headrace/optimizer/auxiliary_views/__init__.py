"""Auxiliary views: inner aggregates, recursions and top-k buffers kept in the companion.

In comes a query whose maintenance would read whole sources. Out go the parts to keep beside the result, and the
programs that keep them.
"""
