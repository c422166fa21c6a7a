"""Definitions of stream tables: details stored with them, the user's text, compiled views.

In come stored JSON and the user's own SQL. Out go `Details`, bound texts and cached compiled views.
"""
