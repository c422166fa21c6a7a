"""Reads the catalog: what exists, where it stands, and its history.

In come names and limits; each question is a query or two, however many tables there are. Out go frozen records
(`headrace.catalog.records`).
"""
