"""Looks, before a session starts, at what its master can be and how many slots it has.

In: the project's settings. Out: `refuse_unreachable`, `available_cores`, `with_spare_slots`.
"""

from headrace.spark.starting.reachable import refuse_unreachable
from headrace.spark.starting.task_slots import available_cores, with_spare_slots

__all__ = ["available_cores", "refuse_unreachable", "with_spare_slots"]
