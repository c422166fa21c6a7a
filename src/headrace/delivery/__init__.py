"""Stream tables into sinks: from a cut of the catalog to a transaction of the target.

In come sinks; out go rows in their targets, and in the catalog how far they are. Knows kinds of sinks by their
protocol only. Door: `deliverer`.
"""
