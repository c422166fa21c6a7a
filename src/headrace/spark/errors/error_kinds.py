"""Tables of Spark's failures: by condition, text, class and state, which error each becomes.

Spark names most failures by an error condition; the rest is recognised by what the exceptions in the chain say. Only
names and texts are looked at here, never an exception.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from headrace.errors import EnvironmentFault, HeadraceError, Unsupported, UserError
from headrace.lakes.lake_server import CHECK_SERVER, SERVERS_OWN
from headrace.lakes.store_errors import STORE_FAULTS, StoreFault


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """Error class, code, message and hint for one kind of failure.

    Args:
        code: Headrace's code.
        family: The error class.
        hint: What to do.
        retryable: Whether trying again may help.
        message: Replaces Spark's sentence, which then becomes the detail.
        detailed: Whether that sentence says more to a reader than the message does.
    """

    code: str
    family: type[HeadraceError]
    hint: str | None = None
    retryable: bool = False
    message: str | None = None
    detailed: bool = True


_ARITHMETIC = ErrorKind(
    "ARITHMETIC_ERROR", UserError, "Use a try_ function (try_divide, try_add, …) where NULL is the right answer."
)
_VALUE = ErrorKind("VALUE_ERROR", UserError, "Use try_cast (or another try_ function) where NULL is the right answer.")
_TYPE = ErrorKind("TYPE_MISMATCH", UserError, "Cast one side explicitly.")
_COLUMN = ErrorKind("COLUMN_NOT_FOUND", UserError)
_NO_TABLE = ErrorKind("TABLE_NOT_FOUND", UserError, "SHOW TABLES IN namespace lists those that exist.")
_DEEP = ErrorKind(
    "QUERY_TOO_DEEP",
    Unsupported,
    "Split it: into views, or into stream tables that read one another. Long lists belong into a table.",
    message="The query is nested too deep, or strings together too many operators, for Spark to read it.",
    detailed=False,
)

_EXECUTOR_LOST = ErrorKind(
    "EXECUTOR_LOST",
    EnvironmentFault,
    "Try again. If executors are lost again and again, look at their logs, and give them more memory.",
    retryable=True,
    message="An executor of Spark was lost, and rows that it kept with it.",
    detailed=False,
)

CONDITIONS: tuple[tuple[str, ErrorKind], ...] = (
    ("FAILED_TO_PARSE_TOO_COMPLEX", _DEEP),
    ("PARSE_", ErrorKind("SYNTAX_ERROR", UserError)),
    ("UNRESOLVED_COLUMN", _COLUMN),
    ("UNRESOLVED_FIELD", _COLUMN),
    ("UNRESOLVED_MAP_KEY", _COLUMN),
    ("FIELD_NOT_FOUND", _COLUMN),
    ("UNRESOLVED_USING_COLUMN_FOR_JOIN", _COLUMN),
    ("COLUMN_NOT_DEFINED_IN_TABLE", _COLUMN),
    ("AMBIGUOUS_", ErrorKind("COLUMN_AMBIGUOUS", UserError, "Qualify it with a table alias.")),
    ("TABLE_OR_VIEW_NOT_FOUND", _NO_TABLE),
    ("TABLE_OR_VIEW_ALREADY_EXISTS", ErrorKind("TABLE_EXISTS", UserError)),
    ("VIEW_NOT_FOUND", _NO_TABLE),
    ("SCHEMA_NOT_FOUND", ErrorKind("NAMESPACE_NOT_FOUND", UserError, "Create it with CREATE NAMESPACE.")),
    ("SCHEMA_ALREADY_EXISTS", ErrorKind("NAMESPACE_EXISTS", UserError)),
    ("SCHEMA_NOT_EMPTY", ErrorKind("NAMESPACE_NOT_EMPTY", UserError)),
    ("CATALOG_NOT_FOUND", ErrorKind("CATALOG_NOT_FOUND", UserError, "Configure it in [spark] of headrace.toml.")),
    (
        "UNRESOLVED_ROUTINE",
        ErrorKind("FUNCTION_NOT_FOUND", UserError, "Use one of Spark's, or declare it in functions.py."),
    ),
    ("COLUMN_ALREADY_EXISTS", ErrorKind("COLUMN_EXISTS", UserError, "Give one of them an alias.")),
    (
        "DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE",
        ErrorKind("TYPE_MISMATCH", UserError, "Give it a value within these bounds."),
    ),
    (
        "DATATYPE_MISMATCH.PARAMETER_CONSTRAINT_VIOLATION",
        ErrorKind("TYPE_MISMATCH", UserError, "Change one of the two values so that this holds."),
    ),
    ("DATATYPE_MISMATCH", _TYPE),
    ("INCOMPATIBLE_DATA_FOR_TABLE", _TYPE),
    ("CANNOT_UP_CAST_DATATYPE", _TYPE),
    ("INCOMPATIBLE_COLUMN_TYPE", _TYPE),
    ("NUM_COLUMNS_MISMATCH", ErrorKind("TYPE_MISMATCH", UserError, "Give both sides the same columns.")),
    ("INSERT_COLUMN_ARITY_MISMATCH", _TYPE),
    ("UNSUPPORTED_DATATYPE", _TYPE),
    ("CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE", _TYPE),
    ("DIVIDE_BY_ZERO", _ARITHMETIC),
    ("REMAINDER_BY_ZERO", _ARITHMETIC),
    ("ARITHMETIC_OVERFLOW", _ARITHMETIC),
    ("BINARY_ARITHMETIC_OVERFLOW", _ARITHMETIC),
    ("NUMERIC_VALUE_OUT_OF_RANGE", _ARITHMETIC),
    ("DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION", _ARITHMETIC),
    ("INTERVAL_", _ARITHMETIC),
    ("CAST_INVALID_INPUT", _VALUE),
    ("CAST_OVERFLOW", _VALUE),
    ("CANNOT_PARSE_INTERVAL", ErrorKind("VALUE_ERROR", UserError, "Write an interval such as '5 minutes' or '1 day'.")),
    ("CANNOT_PARSE_", _VALUE),
    ("CONVERSION_INVALID_INPUT", _VALUE),
    ("DATETIME_FIELD_OUT_OF_BOUNDS", _VALUE),
    ("INVALID_ARRAY_INDEX", _VALUE),
    ("INVALID_PARAMETER_VALUE", _VALUE),
    ("INVALID_FRACTION_OF_SECOND", _VALUE),
    ("MAP_KEY_DOES_NOT_EXIST", _VALUE),
    ("DUPLICATED_MAP_KEY", _VALUE),
    ("NULL_MAP_KEY", _VALUE),
    (
        "RECURSION_",
        ErrorKind(
            "RECURSION_LIMIT",
            UserError,
            "Look for a cycle in the data, or raise the limit: WITH RECURSIVE t(…) MAX RECURSION LEVEL 200 AS (…).",
        ),
    ),
    (
        "INVALID_RECURSIVE_REFERENCE",
        ErrorKind(
            "QUERY_INVALID", UserError, "Order, number or group rows outside of the recursion, over what it gives."
        ),
    ),
    (
        "INVALID_LIMIT_LIKE_EXPRESSION",
        ErrorKind(
            "QUERY_INVALID",
            UserError,
            "Write a number, or number the rows in a subquery by row_number() OVER (ORDER BY …), and compare.",
        ),
    ),
    ("SCALAR_SUBQUERY_TOO_MANY_ROWS", ErrorKind("SUBQUERY_TOO_MANY_ROWS", UserError)),
    ("MERGE_CARDINALITY_VIOLATION", ErrorKind("MERGE_AMBIGUOUS", UserError)),
    ("NOT_NULL_ASSERT_VIOLATION", ErrorKind("NULL_NOT_ALLOWED", UserError)),
    (
        "UNBOUND_SQL_PARAMETER",
        ErrorKind(
            "PARAMETER_UNBOUND",
            UserError,
            "Write the value in its place.",
            message="The query has a parameter (`:name` or `?`) without a value.",
        ),
    ),
    ("UNSUPPORTED_FEATURE", ErrorKind("SPARK_UNSUPPORTED", Unsupported)),
    ("USER_RAISED_EXCEPTION", ErrorKind("RAISED_BY_QUERY", UserError)),
    ("CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND", _EXECUTOR_LOST),
    (
        "OPERATION_CANCELED",
        ErrorKind("CANCELLED", EnvironmentFault, retryable=True, message="The Spark job was cancelled."),
    ),
)
"""Spark's error conditions, by prefix, in the order they are tried."""

_LOST = ErrorKind(
    "SPARK_LOST",
    EnvironmentFault,
    "Open the project again; what was published is untouched.",
    retryable=True,
    message="The connection to Spark was lost.",
)


def _of_store(fault: StoreFault) -> ErrorKind:
    return ErrorKind(fault.code, EnvironmentFault, fault.hint, retryable=fault.retryable, message=fault.message)


EVIDENCE: tuple[tuple[str, ErrorKind], ...] = (
    (
        r"No space left on device|There is not enough space|Disk quota exceeded|File too large|SQLITE_FULL",
        ErrorKind(
            "DISK_FULL",
            EnvironmentFault,
            "Free some space (or raise the limit on files, `ulimit -f`) and try again.",
            retryable=True,
            message="The disk is full.",
        ),
    ),
    (
        r"CommitStateUnknownException",
        ErrorKind(
            "COMMIT_UNKNOWN",
            EnvironmentFault,
            "Try again: Headrace looks at what was really committed first.",
            retryable=True,
            message="It is unknown whether the last commit succeeded.",
        ),
    ),
    (
        r"CommitFailedException|Found conflicting files|Found new conflicting|Missing required files to delete",
        ErrorKind(
            "COMMIT_CONFLICT",
            EnvironmentFault,
            "Try again.",
            retryable=True,
            message="Another writer changed the table in the meantime.",
        ),
    ),
    (
        r"NotAuthorizedException|ForbiddenException|RESTException: Unable to process \(code: 419",
        ErrorKind(
            "LAKE_DENIED",
            EnvironmentFault,
            "Check the credentials in the environment of this process, and what that user may do there.",
            message="The REST catalog does not allow it.",
        ),
    ),
    (
        r"RESTException: Error occurred while processing|RESTException: Unable to process \(code: 429|"
        r"ServiceUnavailableException|ServiceFailureException",
        ErrorKind(
            "LAKE_UNREACHABLE",
            EnvironmentFault,
            CHECK_SERVER,
            retryable=True,
            message="The REST catalog does not answer, or has too much to do.",
        ),
    ),
    (
        r"RESTException: Unable to process|BadRequestException: Malformed request",
        ErrorKind(
            "LAKE_REFUSED",
            EnvironmentFault,
            SERVERS_OWN,
            message="The REST catalog refused a request.",
        ),
    ),
    *((fault.says, _of_store(fault)) for fault in STORE_FAULTS),
    (
        r"Checkpoint block rdd_\S+ not found|ExecutorLostFailure|cannot rollback the ResultStage|"
        r"MetadataFetchFailedException|shuffle map stage with indeterminate output",
        _EXECUTOR_LOST,
    ),
    (
        r"ClassNotFoundException: (?:org\.apache\.iceberg|software\.amazon\.awssdk)|"
        r"NoClassDefFoundError: (?:org/apache/iceberg|software/amazon/awssdk)|"
        r"Cannot initialize FileIO implementation",
        ErrorKind(
            "SPARK_JARS_MISSING",
            EnvironmentFault,
            "Give the driver and all executors Headrace's jars: name them in spark.jars, or by --jars of spark-submit; "
            "`headrace doctor` says where they are.",
            message="Spark does not have all of the jars that Headrace needs, or its executors do not.",
        ),
    ),
    (
        r"SQLITE_BUSY|database is locked",
        ErrorKind(
            "CATALOG_LOCKED", EnvironmentFault, "Try again.", retryable=True, message="The catalog database is locked."
        ),
    ),
    (
        r"Cannot broadcast the table (?:over|that is larger)|Not enough memory to build and broadcast|"
        r"Could not execute broadcast in",
        ErrorKind(
            "BROADCAST_TOO_LARGE",
            EnvironmentFault,
            'Give Spark more memory: "spark.driver.memory" in [spark] of headrace.toml; or set '
            "spark.sql.autoBroadcastJoinThreshold to -1 there.",
            message="One side of a join is too large for Spark to hand it to all tasks.",
        ),
    ),
    (
        r"bigger than (?:local result size limit )?spark\.driver\.maxResultSize",
        ErrorKind(
            "RESULT_TOO_LARGE",
            EnvironmentFault,
            'Raise "spark.driver.maxResultSize" in [spark] of headrace.toml; or ask for fewer rows.',
            message="Spark's tasks give the driver more than it takes.",
        ),
    ),
    (
        r"OutOfMemoryError|Java heap space",
        ErrorKind(
            "SPARK_OUT_OF_MEMORY",
            EnvironmentFault,
            'Give Spark more memory: "spark.driver.memory" in [spark] of headrace.toml.',
            message="Spark ran out of memory.",
        ),
    ),
    (
        r"Intervals greater than a month is not supported",
        ErrorKind(
            "QUERY_INVALID",
            UserError,
            "Give it days, or group by date_trunc('MONTH', t) in the place of a window.",
            message="A window of time has a fixed length, which months and years do not have.",
        ),
    ),
    (
        r"The duration and time inputs to window must be",
        ErrorKind(
            "QUERY_INVALID", UserError, "Write each as a text such as '5 minutes'; what differs by row is not possible."
        ),
    ),
    (
        r"Gap duration expression used in session window",
        ErrorKind(
            "TYPE_MISMATCH",
            UserError,
            "Write the gap as a text such as '5 minutes', or as make_interval(…).",
            message="The gap of session_window() is neither a text nor an interval of the calendar.",
        ),
    ),
    (
        r"Multiple time/session window expressions",
        ErrorKind(
            "QUERY_INVALID",
            UserError,
            "Compute one of them in a subquery: FROM (SELECT *, window(t, '1 hour') AS w FROM …).",
            message="A SELECT has one window of time, and this one has several.",
            detailed=False,
        ),
    ),
    (r"StackOverflowError|Max iterations \(\d+\) reached for batch", _DEEP),
    (
        r"SparkJobCancelled|cancelled part of cancelled job group|[Cc]ancelled as part of|OPERATION_CANCEL",
        ErrorKind("CANCELLED", EnvironmentFault, retryable=True, message="The Spark job was cancelled."),
    ),
    # Py4J's own error says no more than this where the JVM ended without a farewell while it was asked.
    (r"(?m)An error occurred while calling \S*[^.\s]$|does not exist in the JVM", _LOST),
    (
        r"Py4JNetworkError|Answer from Java side is empty|stopped SparkContext|"
        r"SparkContext (was|has been) shut ?down|Shutdown in progress|rejected from \S*Executor\S*\[(Shut|Termin)|"
        r"ConnectionRefusedError|StatusCode.UNAVAILABLE|Connection reset by peer|Broken pipe|NoneType.*_jvm|"
        r"sc' object|JavaPackage|SESSION_CLOSED|INVALID_HANDLE",
        _LOST,
    ),
    (
        r"UncheckedSQLException|java\.sql\.|PSQLException|SQLiteException",
        ErrorKind(
            "CATALOG_UNAVAILABLE",
            EnvironmentFault,
            "Check catalog_url in headrace.toml and that the database runs.",
            retryable=True,
            message="Spark cannot use the catalog database.",
        ),
    ),
    (
        r"NotFoundException|FileNotFoundException|NoSuchFileException|NoSuchKeyException|Failed to open input stream",
        ErrorKind(
            "FILE_MISSING",
            EnvironmentFault,
            "Something deleted files of the warehouse. `headrace repair NAME` makes a stream table or mirror anew.",
            message="A file that a table needs is missing.",
        ),
    ),
    (
        r"Cannot find snapshot with ID",
        ErrorKind(
            "HISTORY_EXPIRED",
            UserError,
            "`headrace maintain --older-than` says how long snapshots are kept; some REST catalogs keep none.",
            message="The table can no longer be read as it was then.",
        ),
    ),
    (r"NamespaceNotEmptyException", ErrorKind("NAMESPACE_NOT_EMPTY", UserError, "Drop its tables first.")),
    (
        r"NoSuchTableException",
        ErrorKind("TABLE_NOT_FOUND", UserError),
    ),
    (
        r"JAVA_GATEWAY_EXITED|Java gateway process exited",
        ErrorKind(
            "SPARK_UNAVAILABLE",
            EnvironmentFault,
            "Run `headrace doctor`; it checks Java, jars and options one by one.",
            message="Spark did not start.",
        ),
    ),
)
"""Kinds of exceptions without a telling condition, by patterns of their text, in this order."""

FALLBACK = ErrorKind("SPARK_ERROR", EnvironmentFault)
"""Of a failure that no table knows."""

_BY_CLASS: tuple[tuple[str, ErrorKind], ...] = (
    ("ParseException", ErrorKind("SYNTAX_ERROR", UserError)),
    ("AnalysisException", ErrorKind("QUERY_INVALID", UserError)),
    ("IllegalArgumentException", ErrorKind("QUERY_INVALID", UserError)),
    ("ArithmeticException", _ARITHMETIC),
    ("DateTimeException", _VALUE),
    ("NumberFormatException", _VALUE),
    ("ArrayIndexOutOfBoundsException", _VALUE),
)
"""Classes of exceptions, in the order they are tried."""

_STATES = {"22": _VALUE, "42": ErrorKind("QUERY_INVALID", UserError)}
"""Classes of SQL's states, by their first two characters."""


def error_kind(condition: str | None, texts: str, classes: Collection[str]) -> ErrorKind:
    """Return the kind of a failure, by the table that says most about it.

    Where none says anything, it is `FALLBACK`.

    Args:
        condition: The error condition that Spark names.
        texts: The messages of the exception and its causes.
        classes: Names of the exception's class and its bases.
    """
    known = _by_condition(condition, texts) or _by_evidence(texts) or _by_class(classes)
    return known or _by_state(texts) or FALLBACK


def _by_condition(condition: str | None, texts: str) -> ErrorKind | None:
    found = [condition] if condition else []
    # A failed task's own condition stands in the text of the job's exception.
    found += re.findall(r"\[([A-Z][A-Z_]+)(?:\.[A-Z_]+)*\]", texts)
    # what a query raises itself may name the condition it stands for
    found.sort(key=lambda name: name == "USER_RAISED_EXCEPTION")
    return next((kind for name in found for prefix, kind in CONDITIONS if name.startswith(prefix)), None)


def _by_evidence(texts: str) -> ErrorKind | None:
    return next((kind for pattern, kind in EVIDENCE if re.search(pattern, texts)), None)


def _by_state(texts: str) -> ErrorKind | None:
    """Return a kind by SQL's state, where Spark's exception class says less."""
    state = re.search(r"SQLSTATE: (\w\w)", texts)
    return _STATES.get(state[1]) if state is not None else None


def _by_class(classes: Collection[str]) -> ErrorKind | None:
    return next((kind for name, kind in _BY_CLASS if name in classes), None)
