"""Registers the project's Python functions with Spark sessions."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from headrace.functions import Function
from headrace.functions.declared_functions import invalid
from headrace.functions.registry import MODULE_PREFIX
from headrace.names import quote
from headrace.spark.errors import translate, translated
from headrace.sql.reader.names.resolve import SPARKS_OWN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


NONE: Mapping[str, Function] = MappingProxyType({})


def register(session: SparkSession, functions: Mapping[str, Function], former: Mapping[str, Function] = NONE) -> None:
    """Let a session's queries call functions.

    Args:
        session: The session.
        functions: By name.
        former: What it had before; those that are the same are left, those that are gone are removed.

    Raises:
        UserError: `FUNCTION_INVALID`.
    """
    for name in former.keys() - functions.keys():
        with translated():
            session.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {quote(name)}")
    for name, function in functions.items():
        if former.get(name) is not function:
            _register(session, function)


def _register(session: SparkSession, function: Function) -> None:
    from pyspark import cloudpickle
    from pyspark.sql.functions import udf

    if function.name in SPARKS_OWN:
        raise invalid(function.name, "Spark has a function of that name.", hint="Give it another one: name=…")
    module = sys.modules.get(function.call.__module__ or "")
    if module is not None and module.__name__.startswith(MODULE_PREFIX):
        # it is a file that workers could not import
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        # PySpark does it, too, and prints what fails before it raises it
        cloudpickle.dumps(function.call)  # type: ignore[no-untyped-call]
        made = udf(function.call, function.returns)
        session.udf.register(function.name, made if function.deterministic else made.asNondeterministic())
    except Exception as error:  # also what PySpark cannot send to its workers fails in any way
        told = translate(error)
        if told.retryable:
            raise told from error
        hint = "Name a type of Spark's in returns; let the function open files and connections itself."
        raise invalid(function.name, f"{type(error).__name__}: {told.message}", hint=hint) from error
