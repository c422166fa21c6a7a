"""Statistics of past refreshes, for planning the next ones; no result depends on them.

In come observations (`observe`) and a table's history; out go expectations of rows, strategies to leave out for a
while, and the calibration of the cost model. Doors: `session_statistics`, `calibration`.
"""
