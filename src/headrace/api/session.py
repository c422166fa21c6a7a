"""Starts the Spark session at first use, and reports its settings before that."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from headrace import config
from headrace.events import Events
from headrace.functions import FILE_NAME, Functions
from headrace.names import LAKE, STAGING, TableName, split_identifier
from headrace.semantics import Semantics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.functions import Function
    from headrace.spark.runner import SparkRunner


class LazySpark:
    """The Spark session, started at first use; the engine uses it as the protocol `Session`."""

    def __init__(
        self,
        settings: config.Settings,
        events: Events,
        given: SparkSession | None,
        start: Callable[[Events], SparkSession] | None = None,
    ) -> None:
        self._settings = settings
        self._functions = Functions(settings.root / FILE_NAME)
        self._events = events
        self._session = given
        self._start = start
        self._checked = given is None
        self.owned = False
        self._runner: SparkRunner | None = None
        self._lock = threading.RLock()
        self._unsettled = False  # Ctrl-C is not handled yet, which only the main thread can have done

    @property
    def started(self) -> bool:
        """Return whether there is a session."""
        return self._session is not None

    def session(self) -> SparkSession:
        """Return the session; starts it."""
        with self._lock:
            from headrace.spark.session import check_session, open_session, running_session

            if self._session is not None and self._checked:
                self._settle()
                return self._session
            functions = self._functions.now()  # first: what is wrong with them is known without Spark
            if self._session is None and self._start is not None:  # somebody else's, who also ends it
                self._session, self._checked = self._start(self._events), True
            elif self._session is None:
                self._session, self._checked = running_session(), False
            if self._session is None:
                self._session, self.owned = open_session(self._settings, self._events), True
                self._unsettled = threading.current_thread() is not threading.main_thread()
            elif not self._checked and not self._settings.spark_remote:
                check_session(self._session, self._settings)
            self._checked = True
            self.runner().use(functions)
            return self._session

    def adopt(self) -> None:
        """Take the session that somebody runs in this thread, if any, starting none.

        To be called before other threads may need one: Spark tells of it only here, and they would start another.
        """
        with self._lock:
            if self._session is not None or self._start is not None or "pyspark" not in sys.modules:
                return
            from headrace.spark.session import running_session

            self._session, self._checked = running_session(), False

    def functions(self) -> Mapping[str, Function]:
        """Return the project's functions by name, as they are now.

        A session that runs has them, too.
        """
        with self._lock:
            found = self._functions.now()
            if self._session is not None and self._checked:
                self.runner().use(found)
            return found

    def function_names(self) -> frozenset[str]:
        """Return names of the project's functions, in lower case."""
        return frozenset(self._functions.now())

    def register(self, function: Function) -> None:
        """Add a function, for as long as this object lives."""
        self._functions.register(function)
        self.functions()

    def runner(self) -> SparkRunner:
        """Return the runner over the session."""
        with self._lock:
            if self._runner is None:
                from headrace.spark.runner import SparkRunner

                self._runner = SparkRunner(self.session())
            self._settle()
            return self._runner

    def _settle(self) -> None:
        """Handle Ctrl-C before the main thread waits for a Spark that another one has started."""
        if not self._unsettled or threading.current_thread() is not threading.main_thread():
            return
        former = signal.getsignal(signal.SIGINT)
        if former is signal.default_int_handler and self._session is not None and not self._settings.spark_remote:
            from headrace.spark.interrupts import settle_sigint

            settle_sigint(former, self._session.sparkContext.cancelAllJobs)
            self._unsettled = False

    @property
    def restartable(self) -> bool:
        """Return whether Spark was started here; over Spark Connect it is the server's."""
        return self.owned and not self._settings.spark_remote

    def restart(self) -> None:
        """End Spark, in whatever state it is, and start it anew; nothing may use it meanwhile."""
        from headrace.spark.end_session import end

        with self._lock:
            session, self._session, self._runner = self._session, None, None
            if session is not None:
                end(session)
            self.session()

    def cancel_jobs(self) -> None:
        """Cancel whatever runs in this session and in those derived from it; never fails."""
        runner = self._runner  # without the lock: whoever holds it may be waiting for what is to be cancelled
        if runner is not None:
            runner.interrupt_all()

    def close(self) -> None:
        """Close the sessions that were made for this object, and stop Spark if it was started here.

        The driver may be dead already. A session that the user brought stays as it is.
        """
        from headrace.spark.end_session import leave, stop

        with self._lock:
            if self._session is None or not self._checked:
                return
            if self._runner is not None:
                for session in self._runner.derived():
                    leave(session)
            if self.owned or self._start is not None:
                leave(self._session)
            if self.owned:
                stop(self._session, remote=self._settings.spark_remote is not None)

    def namespace(self) -> tuple[str, ...]:
        """Return the current namespace in `lake`.

        Empty when another catalog is current, or the session does not run.
        """
        if not self.started:
            return ()
        catalog = self.session().catalog
        if catalog.currentCatalog() != LAKE:
            return ()
        current = catalog.currentDatabase()
        return split_identifier(current) if current else ()

    def catalogs(self) -> frozenset[str]:
        """Return catalogs configured in the session."""
        if not self.started:
            prefix = "spark.sql.catalog."
            given = {k[len(prefix) :] for k in self._settings.spark_options if k.startswith(prefix)}
            return frozenset({LAKE, STAGING} | {name for name in given if "." not in name})
        from headrace.spark.session import catalog_names

        return catalog_names(self.session())

    def location(self, name: TableName) -> str | None:
        """Return newest metadata file of a table outside `lake`."""
        from headrace.sources.lakehouse.foreign_catalogs import metadata_location

        cached = self.session().conf.get(f"spark.sql.catalog.{name.catalog}.cache-enabled", "true") or ""
        return metadata_location(self.runner(), name, cached=cached.lower() == "true")


def usual_semantics(settings: config.Settings) -> Semantics:
    """Return the semantics that sessions of a project begin with; nothing is started."""
    usual = {**Semantics().options(), **settings.spark_options}
    return Semantics.established_by(usual.__getitem__)
