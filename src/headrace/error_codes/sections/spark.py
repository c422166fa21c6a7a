"""Faults of Java, jars and Spark."""

from __future__ import annotations

from headrace.error_codes.code import ErrorCode

CODES = (
    ErrorCode(
        "JAVA_MISSING",
        message="No Java was found.",
        cause="Neither `JAVA_HOME` nor `PATH` leads to one.",
        remedy="The hint has the command that installs it here.",
        retry="no",
    ),
    ErrorCode(
        "PACKAGE_MISSING",
        message="Something needs a Python package that is not installed.",
        cause="Spark, Spark Connect, PostgreSQL and the demo have extras of their own.",
        remedy="Install the extra that the hint names, such as `pip install 'headrace[local]'`.",
        retry="no",
    ),
    ErrorCode(
        "JAVA_UNSUPPORTED",
        message="The Java found is one that Spark 4.1 does not run on.",
        cause="It needs 17 or 21.",
        remedy="Install one, or set `JAVA_HOME`.",
        retry="no",
    ),
    ErrorCode(
        "SPARK_WRONG_RELEASE",
        message="The Spark found is of another release than 4.1.",
        cause="PySpark, the Connect server, or a session that was handed over. Iceberg's jar is made for one release.",
        remedy="Use Spark 4.1; `headrace doctor` says which PySpark is found, and `SPARK_HOME` names another one.",
        retry="no",
    ),
    ErrorCode(
        "JARS_UNAVAILABLE",
        message="A jar could not be fetched, or its folder not written.",
        cause="No network, a mirror that lacks it, a read-only cache.",
        remedy=("Check the network; set `ivy_settings` or `jars_dir`; offline, copy the file to the path in the hint."),
        retry="sometimes",
    ),
    ErrorCode(
        "JAR_CORRUPT",
        message="A jar is not the file that was expected.",
        cause="Its checksum differs.",
        remedy="Delete it and try again; if it stays so, something on the way alters files.",
        retry="no",
    ),
    ErrorCode(
        "SPARK_UNAVAILABLE",
        message="Spark did not start.",
        cause="",
        remedy="`headrace doctor` checks one thing after the other.",
        retry="sometimes",
    ),
    ErrorCode(
        "SPARK_LOST",
        message="The connection to Spark was lost.",
        cause="The driver ended, or the network broke.",
        remedy=(
            "`headrace run` restarts a session of its own; with another session it retries for half "
            "a minute, then ends. In Python, open the project again."
        ),
        retry="yes",
    ),
    ErrorCode(
        "EXECUTOR_LOST",
        message="An executor of Spark was lost, and rows that it kept with it.",
        cause="On a cluster: it was killed, ran out of memory, or its machine went, again and again.",
        remedy=(
            "Nothing at first: a refresh is computed again, up to twice, and schedules try it later. If it stays so, "
            "look at the executors' logs and give them more memory."
        ),
        retry="yes",
    ),
    ErrorCode(
        "SPARK_JARS_MISSING",
        message="Spark does not have all of the jars that Headrace needs, or its executors do not.",
        cause="A session of your own, or a cluster's, was started without them.",
        remedy="Name them in `spark.jars`, or by `--jars` of `spark-submit`; `headrace doctor` says where they are.",
        retry="no",
    ),
    ErrorCode(
        "BROADCAST_TOO_LARGE",
        message="One side of a join is too large for Spark to hand it to all tasks.",
        cause=(
            "Spark took it to be small. Where Headrace had asked for it, as sides that come from a change mostly are, "
            "the refresh has been computed again without asking."
        ),
        remedy="Raise `spark.driver.memory`, or set `spark.sql.autoBroadcastJoinThreshold` to -1, in `[spark]`.",
        retry="no",
    ),
    ErrorCode(
        "RESULT_TOO_LARGE",
        message="Spark's tasks give the driver more than it takes.",
        cause=(
            "A statement returns very many rows; or a side of a join, on its way to all tasks through the driver, is "
            "larger than Spark took it to be. Where Headrace had asked for the latter, the refresh has been computed "
            "again without asking."
        ),
        remedy="Raise `spark.driver.maxResultSize` in `[spark]`, or ask for fewer rows.",
        retry="no",
    ),
    ErrorCode(
        "SPARK_OUT_OF_MEMORY",
        message="Spark ran out of memory.",
        cause="",
        remedy='Raise `"spark.driver.memory"` in `[spark]`.',
        retry="no",
    ),
    ErrorCode(
        "SPARK_ERROR",
        message="Spark failed in a way that has no code of its own here.",
        cause="See the message, which is Spark's.",
        remedy="",
        retry="no",
    ),
    ErrorCode(
        "SESSION_NOT_CONFIGURED",
        message="The Spark session does not have the project's catalogs.",
        cause="It was started by another program or project, with other options.",
        remedy="Stop it so that Headrace starts its own, or set the options in the detail.",
        retry="no",
    ),
    ErrorCode(
        "CANCELLED",
        message="The Spark job was cancelled.",
        cause="A user, a limit of Spark's, or the end of `headrace run` ended it.",
        remedy="Try again.",
        retry="yes",
    ),
    ErrorCode(
        "REFRESH_TIMEOUT",
        message="A refresh took longer than the table's `timeout`.",
        cause="`headrace run` cancelled it, its Spark jobs too.",
        remedy="Give it a longer timeout, or find out in `headrace history` where the time goes.",
        retry="yes",
    ),
    ErrorCode(
        "REFRESH_BROKE",
        message="A refresh ended in an unexpected error.",
        cause="The message shows it.",
        remedy="If it comes again, report it.",
        retry="yes",
    ),
    ErrorCode(
        "SERVER_LOST",
        message="The project's server ended before it had answered.",
        cause="It was killed, or ran out of memory, in the middle of a command.",
        remedy="Run it again; what was published is whole. `.headrace/serve/serve.log` may say why it ended.",
        retry="yes",
    ),
    ErrorCode(
        "ADDRESS_UNAVAILABLE",
        message="Nothing can listen at an address.",
        cause="Another process has the port, or this machine does not have the address.",
        remedy="Name another port, or 0 for any that is free.",
        retry="no",
    ),
    ErrorCode(
        "SERVER_UNAVAILABLE",
        message="`headrace serve` cannot make its folder or socket.",
        cause="The project folder cannot be written, or belongs to another user.",
        remedy="Make it writable. Commands run without a server, too.",
        retry="no",
    ),
)
