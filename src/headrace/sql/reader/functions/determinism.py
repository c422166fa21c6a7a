"""Functions and literals that make a scalar's value depend on more than its row."""

from __future__ import annotations

import re

from headrace.sql.reader.functions.builtin_functions import AGGREGATES
from headrace.sql.reader.syntax.statement_cursor import string_value
from headrace.sql.reader.syntax.tokens import words

NON_DETERMINISTIC: dict[str, str] = dict.fromkeys(
    words("rand randn random uniform randstr uuid shuffle aes_encrypt"), "gives another result each time it runs"
)
"""Scalar functions that are not functions of their arguments, with the reason."""

NON_DETERMINISTIC |= dict.fromkeys(
    words("now current_timestamp current_date curdate current_time localtimestamp"), "depends on when it runs"
)
NON_DETERMINISTIC |= dict.fromkeys(
    words(
        """
        current_user user session_user current_catalog current_database current_schema current_timezone version
        """
    ),
    "depends on the session that runs it",
)
NON_DETERMINISTIC |= dict.fromkeys(
    words(
        """
        monotonically_increasing_id spark_partition_id input_file_name input_file_block_start
        input_file_block_length
        """
    ),
    "depends on how Spark splits the data",
)
NON_DETERMINISTIC |= dict.fromkeys(
    ["reflect", "java_method", "try_reflect"], "calls code that Headrace cannot look into"
)

ORDER_DEPENDENT = words(
    """
    any_value first first_value last last_value array_agg collect_list listagg string_agg mode max_by min_by
    approx_percentile percentile_approx approx_top_k
    """
)
"""Aggregates whose result may depend on the order in which rows arrive."""

assert ORDER_DEPENDENT <= AGGREGATES

WITHOUT_BRACKETS = words("current_date current_timestamp current_time localtimestamp current_user session_user user")
"""Functions that may be written as a bare word; a column of that name wins."""

BEFORE_ALIASES = WITHOUT_BRACKETS - {"localtimestamp"}
"""Those that win over an alias of the same SELECT, as Spark has it, but in HAVING and ORDER BY."""

_HINT = re.compile(r"now|today|yesterday|tomorrow|\\", re.IGNORECASE)
"""Matches a part of literals that may mean a time; few of a long list are examined further."""

_MOVING = re.compile(r"now|(?:today|yesterday|tomorrow)(?![a-z])[ \t]*[\w:+/.-]*", re.IGNORECASE)
"""Texts of which Spark makes a time when it casts them; behind a day a time zone may stand."""


def moving_literal(string: str) -> bool:
    """Return whether a string literal, as it is written, means a time where it is cast."""
    return _HINT.search(string) is not None and _MOVING.fullmatch(string_value(string).strip()) is not None


NON_DETERMINISTIC_WITHOUT_ARGUMENTS = words("unix_timestamp to_unix_timestamp")
"""Functions of the clock when they are called without arguments."""
