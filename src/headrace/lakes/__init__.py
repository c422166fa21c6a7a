"""Describes a lake that a catalog server keeps: where it is, what is asked of it.

In comes the section `[lake]` of the settings. Out go its settings, and the protocol by which tables are seen and moved.
"""
