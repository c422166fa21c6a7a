"""Runs SQL on Spark by its public API; what needs internals is in files of its own.

Classic Spark and Spark Connect behave alike. `checkpoints` and `local_relation` reach into the JVM where there is one.
"""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from headrace.algebra.schema import Column
from headrace.names import TableName, quote
from headrace.semantics import Semantics
from headrace.spark.checkpoints import checkpoint_on_server, counted, free
from headrace.spark.errors import translated
from headrace.spark.iceberg import forget, purge, unlisted
from headrace.spark.interrupts import interrupt_session
from headrace.spark.local_relation import PARTITIONS, literal_rows, planned_rows
from headrace.spark.parsed_relations import parsed_relations
from headrace.spark.python_functions import register
from headrace.spark.session_kind import SessionKind, kind_of
from headrace.spark.type_texts import type_text

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, Observation, SparkSession

    from headrace.functions import Function

Row = tuple[Any, ...]

_COMMON_TABLE_EXPRESSION = re.compile(r"\bWITH\s+\S+\s+AS\s*\(", re.IGNORECASE)
_CONSTRAINTS = "spark.sql.constraintPropagation.enabled"
_ROWS = "__hr_rows"
_POOL = "spark.scheduler.pool"


@dataclass(slots=True)
class JobGroup:
    """The Spark jobs that one thread ran within a `SparkRunner.jobs` block.

    Args:
        id: The group's id, as Spark's own UI shows it.
        jobs: Number of jobs, known once the block is left; None over Spark Connect, which does not count.
    """

    id: str
    jobs: int | None = None


@dataclass(slots=True)
class _Shared:
    """State shared by the runners of one application."""

    children: dict[Semantics, SparkRunner] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict)
    running: dict[str, tuple[str, JobGroup]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class SparkRunner:
    """Runs SQL in one session; thread-safe while temporary names are unique.

    Args:
        session: The Spark session, classic or Connect.
    """

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self._frames: dict[str, DataFrame | int | None] = {}  # literal rows by their number; None: nothing is kept
        self._counts: dict[str, int] = {}
        self._without_rows: dict[tuple[str, ...], tuple[object, ...]] = {}
        self._checkpoints: set[str] = set()
        self._shared = _Shared()
        self._unconstrained = 0  # threads that want Spark to forget constraints
        self._constraints: str | None = None

    @property
    def classic(self) -> bool:
        """Return whether this process holds the driver (False over Spark Connect)."""
        return hasattr(self.session, "_jsc")

    @cached_property
    def kind(self) -> SessionKind:
        """Return what the session is, by which rows are kept in one way or another."""
        return kind_of(self.session)

    @property
    def semantics(self) -> Semantics:
        """Return the session's current semantics."""
        return Semantics.established_by(self.session.conf.get)

    def under(self, semantics: Semantics) -> SparkRunner:
        """Return the runner of a session of its own that has these semantics.

        One per distinct semantics, kept.

        Temporary views are not shared between it and this runner.
        """
        with self._shared.lock:
            child = self._shared.children.get(semantics)
            if child is None:
                child = SparkRunner(self._sibling(semantics))
                child._shared = self._shared
                self._shared.children[semantics] = child
        if not self.classic:  # where each session has tags of its own
            for tag in self.session.getTags() - child.session.getTags():
                child.session.addTag(tag)
        return child

    def _sibling(self, semantics: Semantics) -> SparkSession:
        with translated():
            # Connect calls it cloneSession; classic Spark's type has no such method.
            make = getattr(self.session, "newSession" if self.classic else "cloneSession")
            session: SparkSession = make()
            if not self.classic:
                # stop() asks for it, and cloneSession() forgets it
                session.release_session_on_close = True  # type: ignore[attr-defined]
            options = {**self._carried(session), **semantics.options()}
            if self.classic:
                options |= {PARTITIONS: "64", **self._brief_plans()}
            for key, value in options.items():
                session.conf.set(key, value)
            register(session, self._shared.functions)
            return session

    def use(self, functions: Mapping[str, Function]) -> None:
        """Have these functions, and no others of the project's, in all sessions of this application.

        Args:
            functions: By name.

        Raises:
            UserError: `FUNCTION_INVALID`: Spark does not take one of them.
        """
        with self._shared.lock:
            former = self._shared.functions
            if functions is former:
                return
            for session in self._sessions():
                register(session, functions, former)
            self._shared.functions = functions

    def _carried(self, session: SparkSession) -> dict[str, str]:
        """Return options set at run time in this session, which a new session does not inherit."""
        known, own = session.conf.getAll, dict(self.session.conf.getAll)
        if self._unconstrained:  # which is for a while; a new session would keep it for ever
            own.pop(_CONSTRAINTS, None)
            own |= {} if self._constraints is None else {_CONSTRAINTS: self._constraints}
        return {k: v for k, v in own.items() if k.startswith("spark.sql.") and known.get(k) != v}

    def _brief_plans(self) -> dict[str, str]:
        """Return options that keep descriptions of plans short, where no UI or log shows them.

        Spark describes each plan before it runs it, and again whenever it adapts it.
        """
        conf = self.session.sparkContext.getConf()
        if conf.get("spark.ui.enabled", "true") == "true" or conf.get("spark.eventLog.enabled", "false") == "true":
            return {}
        return {"spark.sql.ui.explainMode": "simple", "spark.sql.maxPlanStringLength": "2k"}

    def describe(self, sql: str) -> tuple[Column, ...]:
        """Analyse a query without running it.

        Raises:
            HeadraceError: What Spark's analysis found, translated.
        """
        with translated(sql):
            schema = self.session.sql(sql).schema
        return tuple(Column(f.name, type_text(f.dataType), f.nullable) for f in schema.fields)

    def relations(self, sql: str) -> frozenset[str]:
        """Return names of tables in a query as Spark's parser finds them; see `parsed_relations`."""
        with translated(sql):
            return parsed_relations(self.session, sql)

    def run(self, sql: str) -> list[Row]:
        """Run a statement and return its rows."""
        with translated(sql):
            frame = self.session.sql(sql)
            # a command has run by now, and fetching the rows that it does not have takes 15 ms
            return list(frame.collect()) if frame.columns else []

    def scalar(self, sql: str) -> Any:
        """Return the first column of the first row, None when there is no row."""
        rows = self.run(sql)
        return rows[0][0] if rows else None

    def materialize(
        self,
        name: str,
        sql: str,
        aggregates: Mapping[str, str] | None = None,
        *,
        local: bool = False,
    ) -> dict[str, Any]:
        """Compute a query once and keep its rows as view `name` (memory, then disk).

        Spark forgets what it kept when a table that the query reads is written through the same catalog in this
        session, and computes it again: the query must name snapshots, or read what nobody writes meanwhile.

        What is kept forgets what it was computed from: else the plan of each step of a refresh would hold those of all
        before it, and looking through them took minutes for a program of 14 steps. Rows of an executor that leaves a
        cluster are lost then, and who reads them fails (`EXECUTOR_LOST`). Over Spark Connect the plans stay.

        Args:
            name: Temporary view, unique within the application.
            sql: The query.
            aggregates: SQL aggregate expressions over the query's columns, by result name; they come out of the
                same pass. Empty keeps the computing for the first reader over Spark Connect.
            local: Whether they are expected to be few: then the driver, if it is in this process, holds them itself.

        Returns:
            The aggregates' values by name.
        """
        from pyspark import StorageLevel

        in_jvm = self.kind is not SessionKind.CONNECT
        with translated(sql):
            if local and in_jvm and (found := self._literal(name, sql, aggregates or {})) is not None:
                return found
            if in_jvm:
                return self._detached(name, sql, aggregates or {})
            frame = self.session.sql(sql)
            if not _COMMON_TABLE_EXPRESSION.search(sql):
                frame.persist(StorageLevel.MEMORY_AND_DISK)
            frame.createOrReplaceTempView(name)
            if not self.session.table(name).storageLevel.useMemory:
                # Spark finds what it kept by comparing plans, and some do not equal themselves (a table read twice at
                # one snapshot, once for rows and once for deleted ones), or not within a larger one (it numbers common
                # table expressions through a whole statement): every reader would compute them again
                frame.unpersist()
                with self._without_constraints():
                    frame = checkpoint_on_server(frame)
                self._checkpoints.add(name)
                frame.createOrReplaceTempView(name)
            self._frames[name] = frame
            return _force(frame, aggregates) if aggregates else {}

    def _literal(self, name: str, sql: str, aggregates: Mapping[str, str]) -> dict[str, Any] | None:
        """Compute literal rows; return None, keeping nothing, if they are not so few."""
        frame, measures = self.session.sql(sql), _measures(aggregates) if aggregates else None
        held = literal_rows(frame.observe("measures", measures) if measures is not None else frame)
        if held is None:
            return None
        held.frame.createOrReplaceTempView(name)
        self._frames[name] = held.count
        if measures is None:
            return {}
        if held.count or held.observed:
            return _unpacked(held.observed or _aggregated(held.frame, measures))
        return self._of_no_rows(held.frame, aggregates)

    def _of_no_rows(self, frame: DataFrame, aggregates: Mapping[str, str]) -> dict[str, Any]:
        """Return what aggregates give without rows; asked once, as it takes as long as a step."""
        asked = tuple(aggregates.values())
        if asked not in self._without_rows:
            self._without_rows[asked] = tuple(_aggregated(frame, _measures(aggregates)).values())
        return dict(zip(aggregates, self._without_rows[asked], strict=True))

    def _detached(self, name: str, sql: str, aggregates: Mapping[str, str]) -> dict[str, Any]:
        from pyspark.sql import Observation

        with self._without_constraints():
            watch, measures = Observation(), _measures({**aggregates, _ROWS: "count(*)"})
            frame = self.session.sql(sql).observe(watch, measures).localCheckpoint(eager=True)
        found = _observed(watch, frame, measures)
        rows = found.pop(_ROWS)
        frame = counted(frame, rows)
        self._checkpoints.add(name)
        frame.createOrReplaceTempView(name)
        self._frames[name], self._counts[name] = frame, rows
        return found

    def append(self, table: TableName, sql: str, aggregates: Mapping[str, str]) -> dict[str, Any]:
        """Append the rows of a query, which has the table's columns by name, to a table.

        Args:
            table: The table.
            sql: The query.
            aggregates: As for `materialize`.

        Returns:
            The aggregates' values by name.
        """
        from pyspark.sql import Observation

        with translated(sql):
            frame, watch, measures = self.session.sql(sql), Observation(), _measures(aggregates)
            frame.observe(watch, measures).writeTo(table.sql).append()
            return _observed(watch, frame, measures)

    def forget(self, table: TableName, snapshots: Collection[int], *, files: bool = False) -> bool:
        """Drop snapshots from an Iceberg table's metadata, without a Spark job.

        Returns False where that is not possible.

        Args:
            table: The table.
            snapshots: By id; none of them is current or has a name.
            files: Whether the files that only they use are deleted, too.
        """
        if not self.classic:
            return False
        with translated():
            forget(self.session, table, snapshots, files=files)
        return True

    def purge(self, metadata_location: str, table: TableName) -> bool:
        """Delete all files of a table that no catalog has any more, without a Spark job.

        Returns False where that is not possible.

        Args:
            metadata_location: Its newest metadata file.
            table: A name to register it under meanwhile, in a namespace that exists.

        Raises:
            EnvironmentFault: `FILE_MISSING`.
        """
        if not self.classic:
            return False
        with translated():
            purge(self.session, metadata_location, table)
        return True

    def literal_count(self, name: str) -> int | None:
        """Return the number of literal rows held under a name, else None."""
        held = self._frames.get(name)
        return held if isinstance(held, int) else None

    def kept_count(self, name: str) -> int | None:
        """Return the number of rows kept under a name, None if not known."""
        return self._counts.get(name, self.literal_count(name))

    def hold(self, name: str, sql: str, columns: tuple[Column, ...], semantics: Semantics | None = None) -> int | None:
        """Keep a query's rows as view `name` if planning alone yields them, and few.

        Args:
            name: Temporary view, unique within the application.
            sql: The query.
            columns: Its first columns as they must be: a table that it was written to would have converted others.
            semantics: Of the runner that is to have the view; this one's own when None.

        Returns:
            About how many bytes they take; None where nothing was kept.
        """
        if self.kind is SessionKind.CONNECT:
            return None
        holder = self if semantics is None else self.under(semantics)
        with translated(sql):
            asked = self.session.sql(sql)
            types = [type_text(field.dataType) for field in asked.schema.fields]
            same = types[: len(columns)] == [c.type for c in columns]
            found = planned_rows(asked, holder.session) if same else None
            if found is None:
                return None
            held, size = found
            held.frame.createOrReplaceTempView(name)
            holder._frames[name] = held.count
            return size

    @contextmanager
    def _without_constraints(self) -> Iterator[None]:
        """Disable Spark's propagation of constraints while the block runs.

        It takes that along to a checkpoint, also where it is about columns that the checkpoint does not have; the next
        union over it then fails in the optimizer (`key not found`). Other threads' plans do without it meanwhile.
        """
        conf = self.session.conf
        with self._shared.lock:
            if not self._unconstrained:
                self._constraints = conf.get(_CONSTRAINTS, None)
                conf.set(_CONSTRAINTS, "false")
            self._unconstrained += 1
        try:
            yield
        finally:
            with self._shared.lock:
                self._unconstrained -= 1
                if not self._unconstrained:
                    conf.unset(_CONSTRAINTS) if self._constraints is None else conf.set(_CONSTRAINTS, self._constraints)

    def view(self, name: str, sql: str) -> None:
        """Make a query readable as view `name`; it is computed by whoever reads it."""
        with translated(sql):
            self.session.sql(sql).createOrReplaceTempView(name)
            self._frames[name] = None

    def unlisted(self, name: str, metadata_location: str, access: Mapping[str, str]) -> AbstractContextManager[None]:
        """Make a table that no catalog lists readable as view `name` inside a block."""
        return unlisted(self.session, name, metadata_location, access)

    def release(self, name: str) -> None:
        """Forget a view and free what it holds in memory; unknown names are ignored."""
        if name not in self._frames:
            return
        frame = self._frames.pop(name)
        self._counts.pop(name, None)
        with suppress(Exception):  # freeing memory must never fail a refresh that is already done, or hide its error
            if isinstance(frame, int | None):
                pass  # literal rows go with their plan
            elif name in self._checkpoints:
                self._checkpoints.discard(name)
                free(frame)
            else:
                frame.unpersist()
            self.session.catalog.dropTempView(name)

    @contextmanager
    def jobs(self, label: str) -> Iterator[JobGroup]:
        """Count this thread's Spark jobs, and make them cancellable as a group.

        Jobs of one label share a pool of Spark's, so that under fair scheduling a big refresh leaves room for others.

        Args:
            label: What the jobs do, shown in Spark's own UI.
        """
        group = JobGroup(f"headrace-{uuid.uuid4().hex[:12]}")
        self._shared.running[group.id] = (label, group)
        try:
            with self._grouped(group, label):
                yield group
        finally:
            del self._shared.running[group.id]

    @contextmanager
    def _grouped(self, group: JobGroup, label: str) -> Iterator[None]:
        if not self.classic:
            self.session.addTag(group.id)
            try:
                yield
            finally:
                for session in self._sessions():
                    if group.id in session.getTags():
                        session.removeTag(group.id)
            return
        context = self.session.sparkContext
        context.setJobGroup(group.id, label)
        context.setLocalProperty(_POOL, label)
        try:
            yield
        finally:
            with suppress(Exception):  # a lost JVM cannot count; the error that lost it is already on its way
                group.jobs = len(context.statusTracker().getJobIdsForGroup(group.id))
                context.setLocalProperty("spark.jobGroup.id", "")
                context.setLocalProperty(_POOL, None)  # type: ignore[arg-type]  # PySpark takes None for "unset"

    @property
    def tasks_beside(self) -> int | None:
        """Return how many tasks may read at once what is loaded beside others.

        On one machine that is half the cores: a task that reads a large file runs for seconds, and is not interrupted
        whatever waits in other pools. None on a cluster, where some task ends any moment.
        """
        return max(1, self.session.sparkContext.defaultParallelism // 2) if self.kind is SessionKind.LOCAL else None

    def cancel_all(self, label: str) -> None:
        """Stop what runs under a label, in any thread."""
        for of, group in list(self._shared.running.values()):
            if of == label:
                self.cancel(group)

    def interrupt_all(self) -> None:
        """Stop what runs in this runner's sessions, and nothing of others; never fails."""
        for session in self._sessions():
            interrupt_session(session)

    def _sessions(self) -> tuple[SparkSession, ...]:
        return tuple(dict.fromkeys((self.session, *self.derived())))

    def derived(self) -> tuple[SparkSession, ...]:
        """Return the sessions that were made of this runner's."""
        return tuple({child.session: None for child in list(self._shared.children.values())})

    def cancel(self, group: JobGroup) -> None:
        """Stop a group's running jobs; their thread receives `CANCELLED`."""
        with translated():
            if self.classic:
                self.session.sparkContext.cancelJobGroup(group.id)
            else:
                for session in self._sessions():
                    session.interruptTag(group.id)


def _force(frame: DataFrame, aggregates: Mapping[str, str]) -> dict[str, Any]:
    """Fill a persisted frame's cache and aggregate it in the same job.

    Observed metrics ride on a write to nowhere. An aggregate query would add an exchange, and with it two jobs of
    50 ms each (measured: 0.45 s against 0.27 s for a small change).
    """
    from pyspark.sql import Observation

    watch, measures = Observation(), _measures(aggregates)
    frame.observe(watch, measures).write.format("noop").mode("overwrite").save()
    return _observed(watch, frame, measures)


def _measures(aggregates: Mapping[str, str]) -> SparkColumn:
    """Return all aggregates as one struct; each column returned costs a millisecond."""
    from pyspark.sql import functions as f

    return f.expr(f"struct({', '.join(f'{text} AS {quote(alias)}' for alias, text in aggregates.items())})").alias(
        "all"
    )


def _observed(watch: Observation, frame: DataFrame, measures: SparkColumn) -> dict[str, Any]:
    # Adaptive execution replaces a plan that turns out empty, and the metrics go with it.
    return _unpacked(watch.get or _aggregated(frame, measures))


def _aggregated(frame: DataFrame, measures: SparkColumn) -> dict[str, Any]:
    return frame.agg(measures).collect()[0].asDict()


def _unpacked(found: Mapping[str, Any]) -> dict[str, Any]:
    return dict(found["all"].asDict())
