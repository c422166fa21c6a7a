"""Plans a refresh as stages, which are data.

In come the facts of a refresh and the program of its view. Out go stages with the SQL to run, and the decisions taken
while they run. Doors: `facts`, `stage_planner`, `stages`.
"""
