"""FROM clauses: joins, lateral subqueries, generators, PIVOT and UNPIVOT.

In come parsed FROM items. Out goes one relation and the columns in sight.
"""
