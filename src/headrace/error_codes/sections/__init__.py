"""The codes, a file per section of the documentation.

In comes nothing: each file is a tuple of `ErrorCode`. Out goes what `headrace.error_codes.table` puts in order.
"""
