"""Names in a query: scopes, output columns, resolution.

In come the words of a scalar and the columns in sight. Out go resolved lexemes, or the error that says which name is
unknown or ambiguous.
"""
