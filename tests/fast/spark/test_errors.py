import pytest
from py4j.protocol import Py4JError, get_return_value
from pyspark.errors import AnalysisException, ParseException, PySparkException

from headrace.errors import EnvironmentFault, HeadraceError, InternalError, Unsupported, UserError
from headrace.spark.errors import translate, translated
from headrace.spark.errors.error_kinds import CONDITIONS, EVIDENCE
from headrace.suggestions import suggesting_tables

SQL = "SELECT a,\n  b FROM shop.t"


def pyspark_error(condition, message, kind=PySparkException):
    error = kind(message=message)
    error._errorClass = condition
    return error


@pytest.mark.parametrize("prefix", [p for p, _ in CONDITIONS])
def test_every_condition_has_a_code_of_ours(prefix):
    error = translate(pyspark_error(prefix, f"[{prefix}] Something. SQLSTATE: 42000"))
    kind = dict(CONDITIONS)[prefix]
    assert error.code == kind.code
    assert isinstance(error, kind.family)
    assert "SQLSTATE" not in str(error)


@pytest.mark.parametrize(
    ("text", "code", "retryable"),
    [
        ("java.io.IOException: No space left on device", "DISK_FULL", True),
        ("org.apache.iceberg.exceptions.CommitFailedException: Cannot commit", "COMMIT_CONFLICT", True),
        ("org.apache.iceberg.exceptions.CommitStateUnknownException: timeout", "COMMIT_UNKNOWN", True),
        ("o.a.i.exceptions.NotAuthorizedException: Not authorized: The token has expired", "LAKE_DENIED", False),
        ("o.a.i.exceptions.ForbiddenException: Forbidden: no rights on market", "LAKE_DENIED", False),
        (
            "RESTException: Error occurred while processing GET request\nCaused by: Connection reset by peer",
            "LAKE_UNREACHABLE",
            True,
        ),
        ("o.a.i.exceptions.ServiceUnavailableException: Service failed: 503: overloaded", "LAKE_UNREACHABLE", True),
        ("o.a.i.exceptions.ServiceFailureException: Server error: null", "LAKE_UNREACHABLE", True),
        ("o.a.i.exceptions.RESTException: Unable to process (code: 419, type: x): y", "LAKE_DENIED", False),
        ("o.a.i.exceptions.RESTException: Unable to process (code: 429, type: x): y", "LAKE_UNREACHABLE", True),
        ("o.a.i.exceptions.RESTException: Unable to process (code: 422, type: x): y", "LAKE_REFUSED", False),
        ("s3.model.NoSuchKeyException: (Service: S3, Status Code: 404, Request ID: 1)", "FILE_MISSING", False),
        ("S3Exception: The provided token has expired. (Service: S3, Status Code: 400)", "STORE_CREDENTIALS", False),
        ("NoSuchBucketException: The specified bucket does not exist (Service: S3)", "STORE_BUCKET_MISSING", False),
        ("S3Exception: (Service: S3, Status Code: 403, Request ID: 1)", "STORE_DENIED", False),
        ("S3Exception: InvalidAccessKeyId (Service: S3, Status Code: 403)", "STORE_CREDENTIALS", False),
        ("S3Exception: RequestTimeTooSkewed (Service: S3, Status Code: 403)", "STORE_CLOCK_SKEWED", True),
        ("S3Exception: Please reduce your request rate. (Service: S3, Status Code: 503)", "STORE_UNAVAILABLE", True),
        ("CommitStateUnknownException: x Caused by: S3Exception: Access Denied", "COMMIT_UNKNOWN", True),
        ("Lost task 0.3: ExecutorLostFailure (executor 2 exited unrelated to tasks)", "EXECUTOR_LOST", True),
        ("java.lang.ClassNotFoundException: org.apache.iceberg.spark.source.X", "SPARK_JARS_MISSING", False),
        ("[SQLITE_BUSY] The database file is locked (database is locked)", "CATALOG_LOCKED", True),
        ("java.lang.OutOfMemoryError: Java heap space", "SPARK_OUT_OF_MEMORY", False),
        ("Cannot broadcast the table that is larger than 8.0 GiB: 9.1 GiB.", "BROADCAST_TOO_LARGE", False),
        ("Not enough memory to build and broadcast the table to all worker nodes.", "BROADCAST_TOO_LARGE", False),
        (
            "Total size of serialized results of 2 tasks (1025.0 MiB) is bigger than spark.driver.maxResultSize "
            "(1024.0 MiB)",
            "RESULT_TOO_LARGE",
            False,
        ),
        ("Cannot call methods on a stopped SparkContext.", "SPARK_LOST", True),
        ("SparkContext has been shutdown", "SPARK_LOST", True),
        ("java.lang.IllegalStateException: Shutdown in progress", "SPARK_LOST", True),
        (
            "Task java.util.concurrent.FutureTask@75[Not completed, task = a.b$C@12[Wrapped task = a.b.Tasks$1@5d]] "
            "rejected from java.util.concurrent.ThreadPoolExecutor@2d[Terminated, pool size = 0, active threads = 0]",
            "SPARK_LOST",
            True,
        ),
        ("org.apache.iceberg.jdbc.UncheckedSQLException: Failed to connect", "CATALOG_UNAVAILABLE", True),
        ("org.apache.iceberg.exceptions.NotFoundException: Failed to open input stream", "FILE_MISSING", False),
        ("Job 3 cancelled part of cancelled job group headrace-1", "CANCELLED", True),
        ("something nobody foresaw", "SPARK_ERROR", False),
    ],
)
def test_other_failures_are_known_by_what_they_say(text, code, retryable):
    error = translate(PySparkException(message=f"An error occurred.\n{text}\n\tat org.apache.Foo(Foo.java:1)"))
    assert (error.code, error.retryable) == (code, retryable)
    assert isinstance(error, EnvironmentFault)
    assert "Foo.java" not in str(error)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("Intervals greater than a month is not supported (1 month).", "date_trunc"),
        ("The duration and time inputs to window must be an integer, long or string literal.", "'5 minutes'"),
        ("Gap duration expression used in session window must be CalendarIntervalType, but got IntegerType.", "'5"),
        ("Multiple time/session window expressions would result in a cartesian product of rows.", "subquery"),
    ],
)
def test_spans_of_time_that_are_none_have_a_hint(text, hint):
    error = translate(pyspark_error("_LEGACY_ERROR_TEMP_1", text, AnalysisException))
    assert isinstance(error, UserError)
    assert hint in error.hint


def test_a_cause_deep_in_the_chain_counts():
    error = PySparkException(message="Job aborted due to stage failure")
    error.__cause__ = RuntimeError("writing failed")
    error.__cause__.__cause__ = OSError("No space left on device")
    assert translate(error).code == "DISK_FULL"


def test_a_lost_connection_is_known_by_its_class():
    assert translate(ConnectionRefusedError("[Errno 111] Connection refused")).code == "SPARK_LOST"


def test_an_error_that_java_did_not_live_to_explain_is_a_lost_connection():
    class Unsaid(Exception):
        def __str__(self):
            raise ConnectionResetError("[Errno 104] Connection reset by peer")

    assert translate(Unsaid()).code == "SPARK_LOST"


@pytest.mark.parametrize(("answer", "code"), [("x", "SPARK_LOST"), ("xssomething broke", "SPARK_ERROR")])
def test_a_question_that_java_did_not_live_to_answer_is_a_lost_connection(answer, code):
    with pytest.raises(Py4JError) as caught:
        get_return_value(answer, None, "o12", "sql")  # Py4J itself turns a reset connection into the answer "x"
    assert translate(caught.value).code == code


def test_a_failed_tasks_own_condition_stands_in_the_jobs_message():
    text = "Job aborted: org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero."
    error = translate(PySparkException(message=text))
    assert (error.code, error.message) == ("ARITHMETIC_ERROR", "Division by zero.")


def test_a_syntax_error_has_its_place():
    text = "[PARSE_SYNTAX_ERROR] Syntax error at or near 'FROM'. SQLSTATE: 42601 (line 2, pos 4)"
    error = translate(pyspark_error("PARSE_SYNTAX_ERROR", text, ParseException), SQL)
    assert error.message == "Syntax error at or near 'FROM'."
    assert error.place is not None
    assert error.place.render() == "2 |   b FROM shop.t\n        ^"


def test_advice_becomes_the_hint():
    text = "[UNRESOLVED_COLUMN.WITH_SUGGESTION] Name `x` cannot be resolved. Did you mean one of the following? [`a`]."
    error = translate(pyspark_error("UNRESOLVED_COLUMN.WITH_SUGGESTION", text, AnalysisException))
    assert (error.message, error.hint) == ("Name `x` cannot be resolved.", "Did you mean one of the following? [`a`].")


def test_a_table_that_is_not_there_is_told_without_the_paragraph_that_spark_adds():
    text = (
        "[TABLE_OR_VIEW_NOT_FOUND] The table or view `lake`.`shop`.`ordrs` cannot be found. Verify the spelling and "
        "correctness of the schema and catalog. To tolerate the error on drop use DROP VIEW IF EXISTS."
    )
    error = pyspark_error("TABLE_OR_VIEW_NOT_FOUND", text, AnalysisException)
    with pytest.raises(UserError) as caught, suggesting_tables(lambda: ["shop.orders", "crm.calls"]), translated():
        raise error
    assert caught.value.message == "The table or view `lake`.`shop`.`ordrs` cannot be found."
    assert caught.value.hint == "Did you mean shop.orders?"
    assert translate(error).hint == "SHOW TABLES IN namespace lists those that exist."


def test_an_unknown_analysis_error_is_the_users():
    assert isinstance(translate(pyspark_error("NEW_ONE", "[NEW_ONE] Hm.", AnalysisException)), UserError)


def test_our_own_mistakes_are_told_as_such():
    assert isinstance(translate(KeyError("x")), InternalError)


def test_our_errors_pass_unchanged():
    mine = UserError("X", "y")
    with pytest.raises(HeadraceError) as caught, translated():
        raise mine
    assert caught.value is mine


def test_every_pattern_is_told_in_words():
    assert all(kind.message or kind.hint or kind.code == "TABLE_NOT_FOUND" for _, kind in EVIDENCE)


def test_a_python_function_that_fails_is_told_by_its_own_words() -> None:
    said = """Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task 0.0:
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/opt/pyspark/worker.py", line 2000, in main
    process()
  File "/shop/functions.py", line 7, in price
    return int(text)
           ^^^^^^^^^
ValueError: invalid literal for int() with base 10: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/shop/functions.py", line 9, in price
    raise PriceError("no price: x") from None
functions.PriceError: no price: x

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:581)
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: java.io.EOFException
"""
    told = translate(RuntimeError(said), "SELECT price(x) FROM t")
    assert (told.code, told.retryable) == ("FUNCTION_FAILED", False)
    assert told.message == "A Python function failed: functions.PriceError: no price: x"
    assert told.detail == "/shop/functions.py, line 9, in price"


@pytest.mark.parametrize(
    ("state", "code"), [("42704", "QUERY_INVALID"), ("22018", "VALUE_ERROR"), ("XX000", "SPARK_ERROR")]
)
def test_what_has_no_class_of_its_own_is_told_by_its_state(state, code):
    """The name of a collation is looked up by Spark's core, which raises no AnalysisException."""
    error = translate(pyspark_error("NOT_FORESEEN", f"[NOT_FORESEEN] NOPE is none. SQLSTATE: {state}"))
    assert error.code == code
    assert "SQLSTATE" not in error.message


@pytest.mark.parametrize(
    "error",
    [
        pyspark_error("FAILED_TO_PARSE_TOO_COMPLEX", "[FAILED_TO_PARSE_TOO_COMPLEX] The statement …", ParseException),
        PySparkException(message="An error occurred while calling o1.sql.\n: java.lang.StackOverflowError\n\tat x"),
        PySparkException(message="Max iterations (100) reached for batch Resolution, please set 'a.b' to more."),
    ],
)
def test_what_is_too_deep_for_spark_is_told_alike(error):
    told = translate(error)
    assert isinstance(told, Unsupported)
    assert told.code == "QUERY_TOO_DEEP"
    assert told.message.startswith("The query is nested too deep")
    assert told.detail is None
    assert told.hint
