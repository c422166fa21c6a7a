"""Headrace's own SQL statements.

In comes a script's text. Out go statements as values (`parsed_statements`, which `grammar` reads), and their effect
through the API (`run_statement`).
"""
