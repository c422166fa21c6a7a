"""Delta rules: how the change of a query follows from the changes of its sources.

In comes algebra over sources; out goes algebra over Before, After and Change. One operator, one file, in `rules/`;
`program` has the result as steps.
"""
