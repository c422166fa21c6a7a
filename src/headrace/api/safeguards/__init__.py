"""Fuses, gates and watermarks as users set and see them.

In come names and limits; out go frozen descriptions and changed rows of the catalog. Refreshes enforce them in
`headrace.refresh`.
"""
