"""Fuses: stops a refresh whose change is larger than its owner allows.

In come the facts of a refresh and the fuse's limits. Out goes permission, or a blown fuse with its evidence.
"""
