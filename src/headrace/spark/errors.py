"""PySpark's exceptions as Headrace errors.

Spark names most failures by an error condition; the rest is recognised by what the exceptions in the chain say. The
text shown is Spark's own sentence: never a plan, never a Java stack trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from headrace.errors import EnvironmentFault, HeadraceError, InternalError, Place, Unsupported, UserError, place_at
from headrace.lakes.lake_server import CHECK_SERVER, SERVERS_OWN
from headrace.lakes.store_errors import STORE_FAULTS, StoreFault
from headrace.spark.interrupts import await_interrupt
from headrace.spark.python_errors import python_failure


@dataclass(frozen=True, slots=True)
class _Kind:
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


_ARITHMETIC = _Kind(
    "ARITHMETIC_ERROR", UserError, "Use a try_ function (try_divide, try_add, …) where NULL is the right answer."
)
_VALUE = _Kind("VALUE_ERROR", UserError, "Use try_cast (or another try_ function) where NULL is the right answer.")
_TYPE = _Kind("TYPE_MISMATCH", UserError, "Cast one side explicitly.")
_COLUMN = _Kind("COLUMN_NOT_FOUND", UserError)
_NO_TABLE = _Kind("TABLE_NOT_FOUND", UserError, "SHOW TABLES IN namespace lists those that exist.")
_DEEP = _Kind(
    "QUERY_TOO_DEEP",
    Unsupported,
    "Split it: into views, or into stream tables that read one another. Long lists belong into a table.",
    message="The query is nested too deep, or strings together too many operators, for Spark to read it.",
    detailed=False,
)

_EXECUTOR_LOST = _Kind(
    "EXECUTOR_LOST",
    EnvironmentFault,
    "Try again. If executors are lost again and again, look at their logs, and give them more memory.",
    retryable=True,
    message="An executor of Spark was lost, and rows that it kept with it.",
    detailed=False,
)

CONDITIONS: tuple[tuple[str, _Kind], ...] = (
    ("FAILED_TO_PARSE_TOO_COMPLEX", _DEEP),
    ("PARSE_", _Kind("SYNTAX_ERROR", UserError)),
    ("UNRESOLVED_COLUMN", _COLUMN),
    ("UNRESOLVED_FIELD", _COLUMN),
    ("UNRESOLVED_MAP_KEY", _COLUMN),
    ("FIELD_NOT_FOUND", _COLUMN),
    ("UNRESOLVED_USING_COLUMN_FOR_JOIN", _COLUMN),
    ("COLUMN_NOT_DEFINED_IN_TABLE", _COLUMN),
    ("AMBIGUOUS_", _Kind("COLUMN_AMBIGUOUS", UserError, "Qualify it with a table alias.")),
    ("TABLE_OR_VIEW_NOT_FOUND", _NO_TABLE),
    ("TABLE_OR_VIEW_ALREADY_EXISTS", _Kind("TABLE_EXISTS", UserError)),
    ("VIEW_NOT_FOUND", _NO_TABLE),
    ("SCHEMA_NOT_FOUND", _Kind("NAMESPACE_NOT_FOUND", UserError, "Create it with CREATE NAMESPACE.")),
    ("SCHEMA_ALREADY_EXISTS", _Kind("NAMESPACE_EXISTS", UserError)),
    ("SCHEMA_NOT_EMPTY", _Kind("NAMESPACE_NOT_EMPTY", UserError)),
    ("CATALOG_NOT_FOUND", _Kind("CATALOG_NOT_FOUND", UserError, "Configure it in [spark] of headrace.toml.")),
    (
        "UNRESOLVED_ROUTINE",
        _Kind("FUNCTION_NOT_FOUND", UserError, "Use one of Spark's, or declare it in functions.py."),
    ),
    ("COLUMN_ALREADY_EXISTS", _Kind("COLUMN_EXISTS", UserError, "Give one of them an alias.")),
    ("DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE", _Kind("TYPE_MISMATCH", UserError, "Give it a value within these bounds.")),
    (
        "DATATYPE_MISMATCH.PARAMETER_CONSTRAINT_VIOLATION",
        _Kind("TYPE_MISMATCH", UserError, "Change one of the two values so that this holds."),
    ),
    ("DATATYPE_MISMATCH", _TYPE),
    ("INCOMPATIBLE_DATA_FOR_TABLE", _TYPE),
    ("CANNOT_UP_CAST_DATATYPE", _TYPE),
    ("INCOMPATIBLE_COLUMN_TYPE", _TYPE),
    ("NUM_COLUMNS_MISMATCH", _Kind("TYPE_MISMATCH", UserError, "Give both sides the same columns.")),
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
    ("CANNOT_PARSE_INTERVAL", _Kind("VALUE_ERROR", UserError, "Write an interval such as '5 minutes' or '1 day'.")),
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
        _Kind(
            "RECURSION_LIMIT",
            UserError,
            "Look for a cycle in the data, or raise the limit: WITH RECURSIVE t(…) MAX RECURSION LEVEL 200 AS (…).",
        ),
    ),
    (
        "INVALID_RECURSIVE_REFERENCE",
        _Kind("QUERY_INVALID", UserError, "Order, number or group rows outside of the recursion, over what it gives."),
    ),
    (
        "INVALID_LIMIT_LIKE_EXPRESSION",
        _Kind(
            "QUERY_INVALID",
            UserError,
            "Write a number, or number the rows in a subquery by row_number() OVER (ORDER BY …), and compare.",
        ),
    ),
    ("SCALAR_SUBQUERY_TOO_MANY_ROWS", _Kind("SUBQUERY_TOO_MANY_ROWS", UserError)),
    ("MERGE_CARDINALITY_VIOLATION", _Kind("MERGE_AMBIGUOUS", UserError)),
    ("NOT_NULL_ASSERT_VIOLATION", _Kind("NULL_NOT_ALLOWED", UserError)),
    (
        "UNBOUND_SQL_PARAMETER",
        _Kind(
            "PARAMETER_UNBOUND",
            UserError,
            "Write the value in its place.",
            message="The query has a parameter (`:name` or `?`) without a value.",
        ),
    ),
    ("UNSUPPORTED_FEATURE", _Kind("SPARK_UNSUPPORTED", Unsupported)),
    ("USER_RAISED_EXCEPTION", _Kind("RAISED_BY_QUERY", UserError)),
    ("CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND", _EXECUTOR_LOST),
    (
        "OPERATION_CANCELED",
        _Kind("CANCELLED", EnvironmentFault, retryable=True, message="The Spark job was cancelled."),
    ),
)
"""Spark's error conditions, by prefix, in the order they are tried."""

_LOST = _Kind(
    "SPARK_LOST",
    EnvironmentFault,
    "Open the project again; what was published is untouched.",
    retryable=True,
    message="The connection to Spark was lost.",
)


def _of_store(fault: StoreFault) -> _Kind:
    return _Kind(fault.code, EnvironmentFault, fault.hint, retryable=fault.retryable, message=fault.message)


EVIDENCE: tuple[tuple[str, _Kind], ...] = (
    (
        r"No space left on device|There is not enough space|Disk quota exceeded|File too large|SQLITE_FULL",
        _Kind(
            "DISK_FULL",
            EnvironmentFault,
            "Free some space (or raise the limit on files, `ulimit -f`) and try again.",
            retryable=True,
            message="The disk is full.",
        ),
    ),
    (
        r"CommitStateUnknownException",
        _Kind(
            "COMMIT_UNKNOWN",
            EnvironmentFault,
            "Try again: Headrace looks at what was really committed first.",
            retryable=True,
            message="It is unknown whether the last commit succeeded.",
        ),
    ),
    (
        r"CommitFailedException|Found conflicting files|Found new conflicting|Missing required files to delete",
        _Kind(
            "COMMIT_CONFLICT",
            EnvironmentFault,
            "Try again.",
            retryable=True,
            message="Another writer changed the table in the meantime.",
        ),
    ),
    (
        r"NotAuthorizedException|ForbiddenException|RESTException: Unable to process \(code: 419",
        _Kind(
            "LAKE_DENIED",
            EnvironmentFault,
            "Check the credentials in the environment of this process, and what that user may do there.",
            message="The REST catalog does not allow it.",
        ),
    ),
    (
        r"RESTException: Error occurred while processing|RESTException: Unable to process \(code: 429|"
        r"ServiceUnavailableException|ServiceFailureException",
        _Kind(
            "LAKE_UNREACHABLE",
            EnvironmentFault,
            CHECK_SERVER,
            retryable=True,
            message="The REST catalog does not answer, or has too much to do.",
        ),
    ),
    (
        r"RESTException: Unable to process|BadRequestException: Malformed request",
        _Kind(
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
        _Kind(
            "SPARK_JARS_MISSING",
            EnvironmentFault,
            "Give the driver and all executors Headrace's jars: name them in spark.jars, or by --jars of spark-submit; "
            "`headrace doctor` says where they are.",
            message="Spark does not have all of the jars that Headrace needs, or its executors do not.",
        ),
    ),
    (
        r"SQLITE_BUSY|database is locked",
        _Kind(
            "CATALOG_LOCKED", EnvironmentFault, "Try again.", retryable=True, message="The catalog database is locked."
        ),
    ),
    (
        r"Cannot broadcast the table (?:over|that is larger)|Not enough memory to build and broadcast|"
        r"Could not execute broadcast in",
        _Kind(
            "BROADCAST_TOO_LARGE",
            EnvironmentFault,
            'Give Spark more memory: "spark.driver.memory" in [spark] of headrace.toml; or set '
            "spark.sql.autoBroadcastJoinThreshold to -1 there.",
            message="One side of a join is too large for Spark to hand it to all tasks.",
        ),
    ),
    (
        r"bigger than (?:local result size limit )?spark\.driver\.maxResultSize",
        _Kind(
            "RESULT_TOO_LARGE",
            EnvironmentFault,
            'Raise "spark.driver.maxResultSize" in [spark] of headrace.toml; or ask for fewer rows.',
            message="Spark's tasks give the driver more than it takes.",
        ),
    ),
    (
        r"OutOfMemoryError|Java heap space",
        _Kind(
            "SPARK_OUT_OF_MEMORY",
            EnvironmentFault,
            'Give Spark more memory: "spark.driver.memory" in [spark] of headrace.toml.',
            message="Spark ran out of memory.",
        ),
    ),
    (
        r"Intervals greater than a month is not supported",
        _Kind(
            "QUERY_INVALID",
            UserError,
            "Give it days, or group by date_trunc('MONTH', t) in the place of a window.",
            message="A window of time has a fixed length, which months and years do not have.",
        ),
    ),
    (
        r"The duration and time inputs to window must be",
        _Kind(
            "QUERY_INVALID", UserError, "Write each as a text such as '5 minutes'; what differs by row is not possible."
        ),
    ),
    (
        r"Gap duration expression used in session window",
        _Kind(
            "TYPE_MISMATCH",
            UserError,
            "Write the gap as a text such as '5 minutes', or as make_interval(…).",
            message="The gap of session_window() is neither a text nor an interval of the calendar.",
        ),
    ),
    (
        r"Multiple time/session window expressions",
        _Kind(
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
        _Kind("CANCELLED", EnvironmentFault, retryable=True, message="The Spark job was cancelled."),
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
        _Kind(
            "CATALOG_UNAVAILABLE",
            EnvironmentFault,
            "Check catalog_url in headrace.toml and that the database runs.",
            retryable=True,
            message="Spark cannot use the catalog database.",
        ),
    ),
    (
        r"NotFoundException|FileNotFoundException|NoSuchFileException|NoSuchKeyException|Failed to open input stream",
        _Kind(
            "FILE_MISSING",
            EnvironmentFault,
            "Something deleted files of the warehouse. A FULL refresh rebuilds a stream table from its sources.",
            message="A file that a table needs is missing.",
        ),
    ),
    (
        r"Cannot find snapshot with ID",
        _Kind(
            "HISTORY_EXPIRED",
            UserError,
            "`headrace maintain --older-than` says how long snapshots are kept; some REST catalogs keep none.",
            message="The table can no longer be read as it was then.",
        ),
    ),
    (r"NamespaceNotEmptyException", _Kind("NAMESPACE_NOT_EMPTY", UserError, "Drop its tables first.")),
    (
        r"NoSuchTableException",
        _Kind("TABLE_NOT_FOUND", UserError),
    ),
    (
        r"JAVA_GATEWAY_EXITED|Java gateway process exited",
        _Kind(
            "SPARK_UNAVAILABLE",
            EnvironmentFault,
            "Run `headrace doctor`; it checks Java, jars and options one by one.",
            message="Spark did not start.",
        ),
    ),
)
"""What exceptions without a telling condition say, as patterns, in the order they are tried."""

_FALLBACK = _Kind("SPARK_ERROR", EnvironmentFault)
_BY_CLASS: tuple[tuple[str, _Kind], ...] = (
    ("ParseException", _Kind("SYNTAX_ERROR", UserError)),
    ("AnalysisException", _Kind("QUERY_INVALID", UserError)),
    ("IllegalArgumentException", _Kind("QUERY_INVALID", UserError)),
    ("ArithmeticException", _ARITHMETIC),
    ("DateTimeException", _VALUE),
    ("NumberFormatException", _VALUE),
    ("ArrayIndexOutOfBoundsException", _VALUE),
)


_STATES = {"22": _VALUE, "42": _Kind("QUERY_INVALID", UserError)}


@contextmanager
def translated(sql: str | None = None) -> Iterator[None]:
    """Turn what Spark raises within the block into a `HeadraceError`.

    Args:
        sql: The statement being run, for places.
    """
    try:
        yield
    except HeadraceError:
        raise
    except Exception as error:  # Py4J, gRPC and PySpark share no base class
        await_interrupt()
        raise translate(error, sql) from error


def translate(error: Exception, sql: str | None = None) -> HeadraceError:
    """Return the Headrace error for an exception of PySpark, Py4J or gRPC."""
    try:
        return _translated(error, sql)
    except Exception as silence:  # what an exception of Java's says is asked of a JVM that may be gone by now
        return _translated(silence, sql)


def _translated(error: Exception, sql: str | None) -> HeadraceError:
    texts = _texts(error)
    if "[STATE_DIVERGED]" in texts:
        return InternalError(
            "STATE_DIVERGED",
            "A change removes rows that the stream table does not have; nothing was published.",
            hint="Refresh it FULL, and please report this.",
        )
    if failure := python_failure(_whole(error)):
        return failure
    kind = _by_condition(_condition(error), texts) or _by_evidence(texts) or _by_class(error)
    kind = kind or _by_state(texts) or _FALLBACK
    said, advice = _split_advice(_sentence(error, kind))
    message, detail = (kind.message, said if kind.detailed else None) if kind.message else (said, None)
    if kind is _FALLBACK and isinstance(error, TypeError | AttributeError | KeyError | AssertionError):
        return InternalError("INTERNAL_ERROR", message, hint="Please report this.")
    hint = kind.hint if kind.message else advice or kind.hint
    return kind.family(kind.code, message, detail=detail, hint=hint, place=_place(error, sql), retryable=kind.retryable)


def _by_class(error: Exception) -> _Kind | None:
    names = {c.__name__ for c in type(error).__mro__}
    return next((kind for name, kind in _BY_CLASS if name in names), None)


def _split_advice(sentence: str) -> tuple[str, str | None]:
    """Split a message of Spark's from the advice at its end, for the hint.

    That on names which do not exist is the same paragraph each time, on dropping, too, and says nothing.
    """
    match = re.search(r"\s(Did you mean|Use |Verify the spelling|Choose a different name|Correct the value)", sentence)
    if match is None:
        return sentence, None
    said, advice = sentence[: match.start()].strip(), sentence[match.start() :].strip()
    return said, None if advice.startswith("Verify the spelling") else advice


def _condition(error: BaseException) -> str | None:
    getter = getattr(error, "getCondition", None)
    return getter() if getter is not None else None


def _chain(error: BaseException) -> Iterator[Any]:
    """Yield the exception and its causes."""
    seen = set[int]()
    current: Any = error
    while current is not None and id(current) not in seen and len(seen) < 20:
        seen.add(id(current))
        yield current
        current = getattr(current, "cause", None) or getattr(current, "_cause", None) or current.__cause__


def _whole(error: BaseException) -> str:
    """Return everything that the exception and its causes say, traces of Java's included."""
    return "\n".join(f"{type(e).__name__}: {e}\n{getattr(e, '_stackTrace', None) or ''}" for e in _chain(error))


def _texts(error: BaseException) -> str:
    """Return the messages of an exception and its causes, for recognising it only."""
    texts = []
    for current in _chain(error):
        texts.append(f"{type(current).__name__}: {current}")
        trace = getattr(current, "_stackTrace", None) or ""
        texts += [line for line in trace.splitlines() if "Caused by" in line or "Exception:" in line]
    return "\n".join(texts)


def _by_condition(condition: str | None, texts: str) -> _Kind | None:
    found = [condition] if condition else []
    # A failed task's own condition stands in the text of the job's exception.
    found += re.findall(r"\[([A-Z][A-Z_]+)(?:\.[A-Z_]+)*\]", texts)
    # what a query raises itself may name the condition it stands for
    found.sort(key=lambda name: name == "USER_RAISED_EXCEPTION")
    return next((kind for name in found for prefix, kind in CONDITIONS if name.startswith(prefix)), None)


def _by_evidence(texts: str) -> _Kind | None:
    return next((kind for pattern, kind in EVIDENCE if re.search(pattern, texts)), None)


def _by_state(texts: str) -> _Kind | None:
    """Return a kind by SQL's state, where Spark's exception class says less."""
    state = re.search(r"SQLSTATE: (\w\w)", texts)
    return _STATES.get(state[1]) if state is not None else None


def _sentence(error: Exception, kind: _Kind) -> str:
    """Return Spark's own sentence, without what surrounds it."""
    text = _raw(error)
    inner = re.findall(r"(?:Exception|Error): (\[[A-Z_.]+\].*)", text) if kind.message is None else []
    text = (inner or [text])[-1]
    text = re.split(r"\n\s*at |JVM stacktrace|\n\n|== SQL|;\n|Driver stacktrace|\n'|\n\+-", text, maxsplit=1)[0]
    text = re.sub(r"^(?:\[[A-Z_.0-9]+\]\s*)+", "", text.strip())
    text = re.sub(r"\s*SQLSTATE: \w+", "", text)
    text = re.sub(r"\s*\(line \d+, pos \d+\)", "", text)
    text = re.sub(r"If necessary set \S+ to \S+ to bypass this error\.?", "", text)
    text = re.sub(r"^(?:[\w$]+\.)+[\w$]*(?:Exception|Error):\s*", "", text)
    text = " ".join(text.split()).rstrip(";").strip()
    return text or type(error).__name__


def _raw(error: Exception) -> str:
    """Return the exception's own message.

    Py4J's repeats the whole Java trace, so its Java exception is asked.
    """
    getter = getattr(error, "getMessage", None)
    if callable(getter) and (message := getter()):
        return str(message)
    java = getattr(error, "java_exception", None)
    return str(java.getMessage() or java.getClass().getSimpleName()) if java is not None else str(error)


def _place(error: Exception, sql: str | None) -> Place | None:
    if sql is None:
        return None
    match = re.search(r"\(line (\d+), pos (\d+)\)", str(error))
    if match:
        line, column = int(match[1]), int(match[2])
        lines = sql.splitlines()
        return Place(line, column + 1, lines[line - 1]) if 0 < line <= len(lines) else None
    getter = getattr(error, "getQueryContext", None)
    for context in (getter() or ()) if getter is not None else ():
        start = context.startIndex()
        if 0 <= start < len(sql) and any(rest.startswith(context.fragment()[:20]) for rest in _rests(sql, start)):
            return place_at(sql, start)
    return None


def _rests(sql: str, start: int) -> tuple[str, str]:
    """Return the rest of a text from a position in characters, and in Java's UTF-16 units."""
    return sql[start:], sql.encode("utf-16-le")[2 * start :].decode("utf-16-le", "replace")
