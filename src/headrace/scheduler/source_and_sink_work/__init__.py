"""Sources and sinks beside the scheduler's loop: landed and written on threads of their own.

In come what the catalog says is due, and verbs that land or write. Out go landings, deliveries, and a word about each
failure. Doors: `landings`, `deliveries`.
"""
