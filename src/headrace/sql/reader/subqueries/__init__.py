"""Subqueries in expressions, decorrelated into joins.

In comes a subquery with its outer references. Out go semi-joins, lookups or columns of values.
"""
