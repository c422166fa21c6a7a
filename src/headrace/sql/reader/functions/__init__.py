"""Functions of Spark by what they mean for maintenance.

In come the calls of a scalar or an aggregate. Out go facts: determinism, dependence on order, how an aggregate is
maintained.
"""
