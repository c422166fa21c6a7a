"""Builds the Spark session from the settings, or checks the one the user brought."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from headrace.config import Settings
from headrace.errors import EnvironmentFault, UserError
from headrace.events import Events, SparkStarted, SparkStarting
from headrace.extras import CONNECT_CLIENT, CONNECT_PACKAGES, require
from headrace.lakes.lake_settings import CREDENTIAL, TOKEN, LakeSettings, secret
from headrace.lakes.storage_settings import SECRETS, file_access, is_secret
from headrace.names import LAKE, STAGING
from headrace.spark.class_archive import java_options
from headrace.spark.errors import translated
from headrace.spark.interrupts import settle_sigint
from headrace.spark.jars import ensure
from headrace.spark.java import find_java
from headrace.spark.session_kind import is_local
from headrace.spark.starting.java_compiler import compiler_options
from headrace.spark.starting.jvm_output import launch_jvm
from headrace.spark.starting.reachable import refuse_unreachable
from headrace.spark.starting.spark_version import refuse_other_release
from headrace.spark.starting.task_slots import available_cores, with_spare_slots

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOGS = (LAKE, STAGING)
EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
BUSY_TIMEOUT_MS = 30_000
"""Milliseconds that Iceberg's writer waits for another one of a SQLite catalog."""
_CATALOG_CLASS = "org.apache.iceberg.spark.SparkCatalog"


def jdbc_options(catalog_url: str) -> dict[str, str]:
    """Return Iceberg's JDBC properties (`uri`, `jdbc.user`, …) for a SQLAlchemy URL.

    Raises:
        UserError: `CONFIG_INVALID` for a database that cannot hold the catalog.
    """
    url = urlsplit(catalog_url)
    dialect = url.scheme.split("+", 1)[0]
    if dialect == "sqlite":
        path = catalog_url.split("://", 1)[1].split("?", 1)[0].removeprefix("/")
        # The same waiting and journal as Python's side: two writers with different ideas would lock each other out.
        pragmas = f"busy_timeout={BUSY_TIMEOUT_MS}&journal_mode=WAL&synchronous=NORMAL"
        return {"uri": f"jdbc:sqlite:{path}?{pragmas}"}
    if dialect in ("postgresql", "postgres"):
        return _postgresql(url.hostname, url.port, url.path, url.username, url.password, dict(parse_qsl(url.query)))
    raise UserError(
        "CONFIG_INVALID",
        f"catalog_url names a {dialect or 'nameless'} database.",
        hint="Use sqlite:///file.db or postgresql://user:password@host/database.",
    )


def _postgresql(
    host: str | None, port: int | None, path: str, user: str | None, password: str | None, query: Mapping[str, str]
) -> dict[str, str]:
    host = host or query.get("host") or "localhost"
    if host.startswith("/"):
        raise UserError(
            "CONFIG_INVALID",
            "catalog_url reaches PostgreSQL through a Unix socket, which Spark's JDBC driver cannot.",
            hint="Name a host and port, for example postgresql://user@localhost:5432/database.",
        )
    kept = {k: v for k, v in query.items() if k in ("sslmode", "sslrootcert", "sslcert", "sslkey", "ApplicationName")}
    text = "&".join(f"{k}={quote(v, safe='')}" for k, v in kept.items())
    address = f"[{host}]" if ":" in host else host
    number = port or query.get("port") or 5432
    options = {"uri": f"jdbc:postgresql://{address}:{number}{path}{'?' + text if text else ''}"}
    for name, value in (("jdbc.user", user or query.get("user")), ("jdbc.password", password or query.get("password"))):
        if value:
            options[name] = unquote(value)
    return options


def catalog_options(settings: Settings) -> dict[str, str]:
    """Return Spark options that define the two catalogs."""
    common = {
        "type": "jdbc",
        **jdbc_options(settings.catalog_url),
        "warehouse": settings.warehouse,
        "cache-enabled": "false",  # pointers move outside Iceberg's API; a cached table would be a stale one
        "jdbc.schema-version": "V1",
        "init-catalog-tables": "true",
        # What users create here by plain SQL is read incrementally as cheaply as possible.
        "table-default.format-version": str(settings.format_version),
        **{f"table-default.write.{m}.mode": "merge-on-read" for m in ("delete", "update", "merge")},
        "table-default.commit.manifest.min-count-to-merge": "8",  # each manifest costs every scan 3 ms of planning
        **file_access(settings.warehouse, settings.storage),
    }
    options: dict[str, str] = {}
    for name in CATALOGS:
        prefix = f"spark.sql.catalog.{name}"
        elsewhere = None if name == STAGING else settings.lake
        given = common if elsewhere is None else {**settings.storage, **_rest_options(elsewhere, common)}
        options |= {prefix: _CATALOG_CLASS, **{f"{prefix}.{k}": v for k, v in given.items()}}
    return options


def _rest_options(lake: LakeSettings, common: Mapping[str, str]) -> dict[str, str]:
    """Return Iceberg's properties of a lake that a REST catalog keeps."""
    given = {
        "type": "rest",
        "uri": lake.uri,
        "warehouse": lake.warehouse,
        "oauth2-server-uri": lake.oauth2_server_uri,
        "scope": lake.scope,
        "token": secret(TOKEN, os.environ),
        "credential": secret(CREDENTIAL, os.environ),
    }
    kept = {key: value for key, value in common.items() if key == "cache-enabled" or key.startswith("table-default.")}
    return kept | {key: value for key, value in given.items() if value is not None}


def session_options(settings: Settings, jars: tuple[Path, ...]) -> dict[str, str]:
    """Return all Spark options of a session of ours; the user's own come last and win.

    Jars of the user's come beside ours.
    """
    local = is_local(settings.spark_master)
    options = {
        "spark.app.name": "headrace",
        "spark.sql.extensions": EXTENSIONS,
        "spark.sql.defaultCatalog": LAKE,
        "spark.sql.catalogImplementation": "in-memory",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Spark describes each plan before it runs it, results kept from kept results within each other: without an end
        # the text of a deep query's change outgrows the driver.
        "spark.sql.maxPlanStringLength": "200k",
        "spark.scheduler.mode": "FAIR",
        "spark.sql.session.timeZone": "UTC",
        # Every stream table has code of its own, generated and compiled again when it is no longer there: Spark keeps
        # what a hundred stages run, which is what twenty tables need.
        "spark.sql.codegen.cache.maxEntries": "5000",
        **catalog_options(settings),
        **({"spark.redaction.regex": _REDACTED} if settings.lake is not None or settings.storage else {}),
        **(_local_options(settings, jars) if local else _cluster_options(jars)),
    }
    given = settings.spark_options
    both = {
        name: _joined(options[name], given[name], sign) for name, sign in _JARS if name in options and name in given
    }
    return {**options, **given, **both}


_JARS = (("spark.jars", ","), ("spark.driver.extraClassPath", os.pathsep))
"""Options that name jars, and what stands between two."""


def _joined(ours: str, theirs: str, sign: str) -> str:
    return sign.join(dict.fromkeys(filter(None, (*theirs.split(sign), *ours.split(sign)))))


_REDACTED = f"(?i)access[.]?key|sse[.]key|{SECRETS}"
"""Pattern of options whose values Spark shows nowhere: its own, and what else is a secret to Iceberg."""


_MEMORY = "2g"
"""Heap of a session on this machine, unless the user says otherwise."""


def _local_options(settings: Settings, jars: tuple[Path, ...]) -> dict[str, str]:
    """Return options of one JVM on this machine: quick to start, quick for small queries."""
    # The heap has its size, and classes have room, from the beginning: a session that grew to them stopped for whole
    # collections six times in its first refreshes of 19 tables, one of them while it started, instead of twice.
    theirs = "spark.driver.memory" in settings.spark_options or "memory" in os.environ.get("PYSPARK_SUBMIT_ARGS", "")
    heap = () if theirs else (f"-Xms{_MEMORY}",)  # Java refuses to begin with more than there may be
    collector = ("-XX:+UseParallelGC", *heap, "-XX:MetaspaceSize=256m")
    java = (*collector, *compiler_options(), _log_option(), *java_options(settings))
    return {
        # The class path is read by the JVM itself; spark.jars would copy 60 MB for an executor that is this process.
        "spark.driver.extraClassPath": os.pathsep.join(map(str, jars)),
        # Not extraJavaOptions: those are the user's, and come on top.
        "spark.driver.defaultJavaOptions": " ".join(java),
        "spark.driver.memory": _MEMORY,
        # Hadoop's own runs `chmod` as a process, four times a file, and a commit writes five files: 50 of 150 ms.
        "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
        # A change is joined to states far bigger than it: sending it to every task beats shuffling them.
        "spark.sql.autoBroadcastJoinThreshold": str(32 * 1024 * 1024),
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
        # Every user of this machine reaches the driver's ports, which read Java's objects; Spark draws a secret itself.
        "spark.authenticate": "true",
        "spark.sql.shuffle.partitions": str(max(2, min(16, available_cores()))),
        "spark.sql.warehouse.dir": str(settings.root / ".spark-warehouse"),
    }


def _cluster_options(jars: tuple[Path, ...]) -> dict[str, str]:
    return {"spark.jars": ",".join(map(str, jars)), "spark.driver.defaultJavaOptions": _log_option()}


def _log_option() -> str:
    """Return the Java option by which the driver logs as little as a command's output bears."""
    return f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"


def running_session() -> SparkSession | None:
    """Return the classic session that runs in this process already, whoever started it.

    None when there is none.
    """
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    with translated():
        return SparkSession.getActiveSession()


def open_session(settings: Settings, events: Events | None = None) -> SparkSession:
    """Start (or connect to) Spark.

    Args:
        settings: The project's.
        events: Hears that it starts, and of jars that are fetched.

    Raises:
        EnvironmentFault: `JAVA_MISSING`, `JAVA_UNSUPPORTED`, `JARS_UNAVAILABLE`, `JAR_CORRUPT`, `SPARK_UNAVAILABLE`.
            `PACKAGE_MISSING`, `SPARK_WRONG_RELEASE`.
        UserError: `CONFIG_INVALID`.
    """
    told = events or Events()
    told.emit(SparkStarting())
    try:
        return _open_session(settings, events)
    finally:
        told.emit(SparkStarted())


def _open_session(settings: Settings, events: Events | None) -> SparkSession:
    if settings.spark_remote:
        require("pyspark", "Spark Connect", "connect", CONNECT_CLIENT)
    require("pyspark", "Spark", "local")
    import pyspark

    refuse_other_release(pyspark.__version__, f"PySpark in {Path(pyspark.__file__).parent}")
    if settings.spark_remote:
        refuse_unreachable(settings.spark_remote)
        return _connect(settings, settings.spark_remote)
    refuse_unreachable(settings.spark_master)
    find_java()
    jars = ensure(settings, events)
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    if is_local(settings.spark_master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # or Spark looks for the host's address, and warns
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # or Python functions run in whatever python3 is
    _silence_pyspark()
    former = signal.getsignal(signal.SIGINT)
    with translated(), uninterrupted() as still:
        master, slots = with_spare_slots(settings.spark_master)
        options = {"spark.master": master, **slots, **session_options(settings, jars)}
        launch_jvm(options)
        SparkContext.getOrCreate(SparkConf().setAll(list(options.items())))
        still()
        builder = SparkSession.builder
        for key, value in options.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        settle_sigint(former, session.sparkContext.cancelAllJobs)
    check_session(session, settings)
    return session


def sibling_session(session: SparkSession, settings: Settings) -> SparkSession:
    """Return a new session of the same application, with the project's settings only."""
    with translated():
        if settings.spark_remote:
            return _connect(settings, settings.spark_remote, own=True)
        return session.newSession()


def is_alive(session: SparkSession) -> bool:
    """Return whether a session can still be used; its JVM may be gone, or its context stopped."""
    try:
        java: Any = getattr(session, "_jsparkSession", None)
        if java is None:
            return not getattr(session, "is_stopped", False)
        return not java.sparkContext().isStopped()
    except Exception:  # Py4J's or Python's own, by how the JVM died
        return False


def state_of(session: SparkSession, functions: Collection[str] = ()) -> str:
    """Return a text that changes when somebody sets something in a classic session.

    Options, current catalog and namespace, temporary views that are not Headrace's, temporary functions, variables.

    Args:
        session: The session.
        functions: Names of temporary functions that are not looked at: the project's.
    """
    java: Any = getattr(session, "_jsparkSession", None)
    if java is None:
        return f"{session.catalog.currentCatalog()}.{session.catalog.currentDatabase()}"
    state = java.sessionState()
    manager, names = state.catalogManager(), state.catalog()
    views = _names_in(names.listLocalTempViews("*"))
    parts = (
        "\n".join(sorted(str(state.conf().settings()).split(", "))),
        str(manager.currentCatalog().name()),
        str(names.getCurrentDatabase()),
        ".".join(manager.currentNamespace()),
        " ".join(view for view in views if not view.startswith("__hr")),
        " ".join(name for name in _names_in(names.listTemporaryFunctions()) if name not in functions),
        str(manager.tempVariableManager().isEmpty()),
    )
    return "\n".join(parts)


def _names_in(found: Any) -> list[str]:
    """Return the names in a Scala sequence of identifiers."""
    return sorted(set(re.findall(r"[^`,() ]+", str(found.mkString(" ")))))


@contextmanager
def uninterrupted() -> Iterator[Callable[[], None]]:
    """Put an interrupt (Ctrl-C) off until the block ends.

    PySpark interrupted while it starts a JVM leaves that JVM running for ever. The function that is yielded is to be
    called when a context was made, which sets a handler that asks the JVM something in the middle of another question.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    came: list[int] = []

    def note(number: int, _: object) -> None:
        came.append(number)

    def install() -> None:
        signal.signal(signal.SIGINT, note)

    former = signal.getsignal(signal.SIGINT)
    install()
    try:
        yield install
    finally:
        if signal.getsignal(signal.SIGINT) is note:  # else whoever started Spark has set another one
            signal.signal(signal.SIGINT, former)
    if came:
        raise KeyboardInterrupt


def _silence_pyspark() -> None:
    """Silence PySpark's loggers, which print every failing query's exception as JSON."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def _connect(settings: Settings, address: str, *, own: bool = False) -> SparkSession:
    for package in CONNECT_PACKAGES:
        require(package, "Spark Connect", "connect")
    from pyspark.sql import SparkSession

    _silence_pyspark()
    with translated():
        builder = SparkSession.builder.remote(address)
        session = builder.create() if own else builder.getOrCreate()
        refuse_other_release(session.version, f"The server at {address}")
        for key, value in {**catalog_options(settings), **settings.spark_options}.items():
            session.conf.set(key, value)
    return session


def check_session(session: SparkSession, settings: Settings) -> None:
    """Check that a session reaches this project's catalogs.

    Raises:
        EnvironmentFault: `SESSION_NOT_CONFIGURED`, naming the options to set; `SPARK_WRONG_RELEASE`.
    """
    wanted = catalog_options(settings)
    with translated():
        refuse_other_release(session.version, "The Spark session")
        given = {name: session.conf.get(name, None) for name in _identifying(wanted)}
    wrong = [name for name, value in given.items() if value != wanted[name]]
    if wrong:
        raise EnvironmentFault(
            "SESSION_NOT_CONFIGURED",
            "This Spark session does not have the project's catalogs.",
            detail="\n".join(
                f"{name} should be {_shown(name, wanted[name])}, is {_shown(name, given[name])}" for name in wrong
            ),
            hint="Stop the session so that Headrace starts its own, or build it with the options of "
            "headrace.spark.session.catalog_options.",
        )


def _identifying(options: Mapping[str, str]) -> list[str]:
    return [k for k in options if not is_secret(k) and ".table-default." not in k and "init-catalog" not in k]


def _shown(name: str, value: str | None) -> str:
    return "hidden" if is_secret(name) else repr(value) if value is not None else "not set"


def catalog_names(session: SparkSession) -> frozenset[str]:
    """Return names of the catalogs a session is configured with, those not used yet included."""
    prefix = "spark.sql.catalog."
    names = (key[len(prefix) :] for key in _option_names(session) if key.startswith(prefix))
    return frozenset({LAKE, STAGING} | {name for name in names if "." not in name})


def _option_names(session: SparkSession) -> Iterable[str]:
    """Return names of all options, in one answer of the JVM.

    Iterating over `conf.getAll` takes 40 ms.
    """
    if not hasattr(session, "_jsparkSession"):  # over Connect, where `getAll` is one answer
        return session.conf.getAll
    java: Any = session._jsparkSession
    names: str = java.sessionState().conf().getAllConfs().keys().mkString("\n")
    return names.split("\n")
