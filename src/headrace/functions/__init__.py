"""Python functions of a project, which queries of stream tables may call by name."""

from headrace.functions.declared import Function, declare, function
from headrace.functions.registry import FILE_NAME, Functions, changed, signature

__all__ = ["FILE_NAME", "Function", "Functions", "changed", "declare", "function", "signature"]
