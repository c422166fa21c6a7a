"""Moves a project from the catalog's own database to an Iceberg REST catalog and back, without writing data.

In comes a project that nobody works on. Out goes the same project, whose tables another catalog keeps, or an error
after which everything is where it was. Door: `move_catalog`.
"""
