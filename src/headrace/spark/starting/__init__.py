"""Looks at Spark's release, its master and slots before a session, and starts the JVM.

In: the project's settings. Out: `refuse_unreachable`, `available_cores`, `with_spare_slots`, `compiler_options`,
`launch_jvm`, `telling_by`, `refuse_other_release`.
"""

from headrace.spark.starting.java_compiler import compiler_options
from headrace.spark.starting.jvm_output import launch_jvm, telling_by
from headrace.spark.starting.reachable import refuse_unreachable
from headrace.spark.starting.spark_version import refuse_other_release
from headrace.spark.starting.task_slots import available_cores, with_spare_slots

__all__ = [
    "available_cores",
    "compiler_options",
    "launch_jvm",
    "refuse_other_release",
    "refuse_unreachable",
    "telling_by",
    "with_spare_slots",
]
