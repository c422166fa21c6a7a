"""Moves a project from its own database to an Iceberg REST catalog, and back.

No data is written. In comes a project that nobody works on. Out goes the same project, whose tables another catalog
keeps, or an error after which everything is where it was. Door: `move_catalog`.
"""
