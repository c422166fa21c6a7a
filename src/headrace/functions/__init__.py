"""Python functions of a project, which queries of stream tables may call by name.

In come decorated Python functions; out go their signatures and fingerprints, by which a change is noticed.
"""

from headrace.functions.declared_functions import Function, declare, function
from headrace.functions.registry import FILE_NAME, Functions, changed, signature

__all__ = ["FILE_NAME", "Function", "Functions", "changed", "declare", "function", "signature"]
