"""Spark's failures as Headrace errors.

In come exceptions of PySpark, Py4J and gRPC. Out go errors with a code, Spark's own sentence, a hint and a place in the
user's text. Doors: `translate`, `translated`.
"""

from headrace.spark.errors.translation import translate, translated

__all__ = ["translate", "translated"]
