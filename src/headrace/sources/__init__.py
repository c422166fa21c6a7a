"""Where rows come from: lakehouse tables and captured databases.

A source answers four questions: its head, its changes, its rows at a version, its schema. Out go SQL expressions that
read them, or batches that are landed (`capture`).
"""
