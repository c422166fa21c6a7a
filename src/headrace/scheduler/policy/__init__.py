"""The scheduler's decisions as pure functions and small state machines.

In come the scheduler's state and the time. Out goes what starts next, what waits and why; neither clock, threads nor
catalog are touched.
"""
