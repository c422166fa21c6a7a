"""The table of error codes: message, cause, remedy and retry of each, in one place.

In comes nothing: the table is data. Out goes docs/errors.md, which `document` writes and a test compares. The errors
themselves are raised as the classes of `headrace.errors`.
"""
