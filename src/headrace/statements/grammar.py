"""Headrace's own statements.

    CREATE [OR REPLACE] STREAM TABLE [IF NOT EXISTS] name
        [SCHEDULE '…'] [REFRESH MODE AUTO|FULL|DIFFERENTIAL] [WITH (key = value, …)] [INITIALIZE TRUE|FALSE]
        AS query
    ALTER STREAM TABLE name SET {SCHEDULE '…' | REFRESH MODE mode | PROPERTIES (key = value, …) | QUERY AS query}
        (several, comma-separated)
    ALTER STREAM TABLE name DROP {SCHEDULE | PROPERTIES (key, …)}
    ALTER STREAM TABLE name RESOLVE FUSE {APPLY | SKIP | REINITIALIZE}
    DROP STREAM TABLE [IF EXISTS] name [CASCADE]
    REFRESH STREAM TABLE name, … [FULL]        REFRESH ALL STREAM TABLES [FULL]
    REPAIR STREAM TABLE name, …        REPAIR ALL STREAM TABLES
    EXPLAIN [FULL|DIFFERENTIAL] STREAM TABLE {name | AS query}
    EXPLAIN ANALYZE STREAM TABLE name
    SHOW STREAM TABLES [IN namespace] [LIKE 'pattern']
    SHOW CREATE STREAM TABLE name, …
    CREATE SOURCE …, ALTER SOURCE …, DROP SOURCE …, SHOW SOURCES   (kinds read their clauses: `sources.registry`)
    CREATE SINK …, ALTER SINK …, DROP SINK …, VERIFY SINK …, SHOW SINKS   (kinds read theirs: `sinks.registry`)
    CLOSE GATE ON table, …       OPEN GATE ON table, …       SHOW GATES
    DECLARE KEY (column, …) ON table [NOT CHECKED]       DROP KEY (column, …) ON table       SHOW KEYS
    CREATE WATERMARK GROUP, DROP WATERMARK GROUP, ADVANCE WATERMARK, SHOW WATERMARKS   (see `forms.WATERMARK`)
    CREATE REFRESH GROUP name AS table, table, …       DROP REFRESH GROUP [IF EXISTS] name
    CREATE GREEN STREAM TABLE …, PROMOTE …, ROLLBACK …, CANCEL …, SHOW DEPLOYMENTS     (see `forms.DEPLOYMENT`)

`INITIALIZE` is the Python API's word: FALSE defines the table and leaves its first load to the first refresh. Every
other statement is Spark's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from headrace.errors import HeadraceError, place_at
from headrace.sinks.registry import KINDS as SINK_KINDS
from headrace.sinks.registry import sink_kind_of
from headrace.sources.registry import KINDS, read_kind
from headrace.sources.source_kind import KindOfNodes
from headrace.sql.reader.syntax.from_clause import dotted_name
from headrace.sql.reader.syntax.statement_cursor import StatementCursor
from headrace.statements import forms
from headrace.statements.forms import Name
from headrace.statements.parsed_statements import (
    AdvanceWatermark,
    AlterDeployment,
    AlterShard,
    AlterSink,
    AlterSource,
    AlterStreamTable,
    CreateGreen,
    CreateRefreshGroup,
    CreateSink,
    CreateSource,
    CreateStreamTable,
    CreateWatermarkGroup,
    DeclareKey,
    DropKey,
    DropRefreshGroup,
    DropSink,
    DropSource,
    DropStreamTable,
    DropWatermarkGroup,
    EndGreen,
    ExplainStreamTable,
    Query,
    RefreshStreamTable,
    RepairStreamTable,
    ResolveFuse,
    SetGate,
    ShowCreateStreamTable,
    ShowDeployments,
    ShowGates,
    ShowKeys,
    ShowSinks,
    ShowSources,
    ShowStreamTables,
    ShowWatermarks,
    SparkStatement,
    Statement,
    VerifySink,
)
from headrace.statements.script import Part, split_script


def parse_script(script: str) -> tuple[Statement, ...]:
    """Cut a script into statements and read those that are Headrace's.

    Raises:
        UserError: `SYNTAX_ERROR` with line, caret and the right form.
    """
    return tuple(_statement(script, part) for part in split_script(script))


class _Reader(StatementCursor):
    """Reads one of our statements."""

    def __init__(self, script: str, part: Part) -> None:
        super().__init__(script, part.tokens)
        self.part = part

    def table(self) -> Name:
        if not self.peek().is_name:
            raise self.fail("A table name was expected here")
        return dotted_name(self)

    def tables(self) -> tuple[Name, ...]:
        names = [self.table()]
        while self.take(","):
            names.append(self.table())
        return tuple(names)

    def if_exists(self) -> bool:
        there = self.take("IF")
        if there:
            self.need("EXISTS")
        return there

    def if_not_exists(self) -> bool:
        missing = self.take("IF")
        if missing:
            self.need("NOT", "EXISTS")
        return missing

    def query(self) -> Query:
        """Step over the rest of the statement; comments and indentation belong to the query."""
        if self.done:
            raise self.fail("A query was expected here")
        start = self.peek(-1).end
        start += self.sql[start].isspace()
        self.at = len(self.tokens)
        return Query(self.sql[start : self.part.end].rstrip(), start)


def _statement(script: str, part: Part) -> Statement:
    reader = _Reader(script, part)
    for words, last, form, read in _STATEMENTS:
        if reader.take(*words):
            reader.form = form
            reader.need(*last.split())
            statement = read(reader)
            reader.end()
            return replace(statement, sql=part.text, start=part.start)
    return SparkStatement(sql=part.text, start=part.start)


@dataclass
class _TableOptions:
    """Options before the query of a stream table, as far as they are read."""

    schedule: str | None = None
    refresh_mode: str | None = None
    initialize: bool = True
    properties: dict[str, str] = field(default_factory=dict)

    def take_setting(self, reader: _Reader) -> bool:
        """Read a schedule or a refresh mode, if one is next."""
        if reader.take("SCHEDULE"):
            self.schedule = reader.string("A schedule")
        elif reader.take("REFRESH"):
            reader.need("MODE")
            self.refresh_mode = reader.mode("AUTO", "FULL", "DIFFERENTIAL")
        else:
            return False
        return True

    def read(self, reader: _Reader) -> None:
        """Read the next option.

        Raises:
            UserError: `SYNTAX_ERROR` where none stands.
        """
        if self.take_setting(reader):
            return
        if reader.take("WITH"):
            self.properties |= reader.properties()
        elif reader.take("INITIALIZE"):
            self.initialize = reader.mode("TRUE", "FALSE") == "TRUE"
        else:
            raise reader.fail("AS and a query, or an option, was expected here")


def _create(reader: _Reader) -> Statement:
    or_replace = reader.peek(-3).word == "REPLACE"
    if_not_exists = reader.if_not_exists()
    name = reader.table()
    given = _TableOptions()
    while not reader.take("AS"):
        given.read(reader)
    return CreateStreamTable(
        name=name,
        query=reader.query(),
        schedule=given.schedule,
        refresh_mode=given.refresh_mode or "AUTO",
        or_replace=or_replace,
        if_not_exists=if_not_exists,
        properties=given.properties,
        initialize=given.initialize,
    )


def _alter(reader: _Reader) -> Statement:
    name = reader.table()
    if reader.take("RESOLVE"):
        reader.need("FUSE")
        return ResolveFuse(name=name, resolution=reader.mode("APPLY", "SKIP", "REINITIALIZE"))
    if reader.take("DROP"):
        if reader.take("PROPERTIES"):
            return AlterStreamTable(name=name, drop_properties=reader.keys())
        reader.need("SCHEDULE")
        return AlterStreamTable(name=name, drop_schedule=True)
    reader.need("SET")
    given, query = _TableOptions(), None
    while True:
        if reader.take("QUERY"):
            reader.need("AS")
            query = reader.query()
        elif reader.take("PROPERTIES"):
            given.properties |= reader.properties()
        elif not given.take_setting(reader):
            raise reader.fail("SCHEDULE, REFRESH MODE, PROPERTIES or QUERY AS was expected here")
        if not reader.take(","):
            break
        reader.take("SET")
    return AlterStreamTable(
        name=name,
        schedule=given.schedule,
        refresh_mode=given.refresh_mode,
        query=query,
        properties=given.properties,
    )


def _drop(reader: _Reader) -> Statement:
    if_exists = reader.if_exists()
    name = reader.table()
    if not if_exists and reader.take("IN"):
        reader.need("DEPLOYMENT")
        return DropStreamTable(name=name, deployment=reader.name("A name for the deployment"))
    cascade = reader.take("CASCADE")
    return DropStreamTable(name=name, if_exists=if_exists, cascade=cascade)


def _refresh(reader: _Reader) -> Statement:
    return _refreshed(reader, reader.tables())


def _refreshed(reader: _Reader, names: tuple[Name, ...] = ()) -> Statement:
    full = reader.take("FULL")
    return RefreshStreamTable(names=names, full=full)


def _repair(reader: _Reader) -> Statement:
    return RepairStreamTable(names=reader.tables())


def _explain(reader: _Reader) -> Statement:
    mode = reader.peek(-3).word
    query = reader.query() if mode != "ANALYZE" and reader.take("AS") else None
    name = reader.table() if query is None else None
    wanted = mode if mode in ("FULL", "DIFFERENTIAL") else None
    return ExplainStreamTable(name=name, query=query, refresh_mode=wanted, analyze=mode == "ANALYZE")


def _show(reader: _Reader) -> Statement:
    namespace = reader.table() if reader.take("IN") or reader.take("FROM") else None
    like = reader.string("A pattern") if reader.take("LIKE") else None
    return ShowStreamTables(namespace=namespace, like=like)


def _show_create(reader: _Reader) -> Statement:
    return ShowCreateStreamTable(names=reader.tables())


def _create_green(reader: _Reader) -> Statement:
    new = reader.peek(-4).word == "NEW"
    name, deployment, query = reader.table(), "green", None
    given, auto_promote = _TableOptions(), None
    while query is None and not reader.done:
        if reader.take("AS"):
            query = reader.query()
        elif reader.take("IN"):
            reader.need("DEPLOYMENT")
            deployment = reader.name("A name for the deployment")
        elif reader.take("AUTO"):
            auto_promote = _conditions(reader)
        else:
            given.read(reader)
    return CreateGreen(
        name=name,
        deployment=deployment,
        query=query,
        schedule=given.schedule,
        refresh_mode=given.refresh_mode,
        properties=given.properties,
        initialize=given.initialize,
        auto_promote=auto_promote,
        new=new,
    )


def _conditions(reader: _Reader) -> dict[str, str]:
    reader.need("PROMOTE")
    return reader.properties() if reader.peek().text == "(" else {}


def _alter_deployment(reader: _Reader) -> Statement:
    deployment = reader.name("A deployment")
    if reader.take("NO"):
        reader.need("AUTO")
        reader.need("PROMOTE")
        return AlterDeployment(deployment=deployment, auto_promote=None)
    reader.need("AUTO")
    return AlterDeployment(deployment=deployment, auto_promote=_conditions(reader))


def _show_deployments(reader: _Reader) -> Statement:
    return ShowDeployments(properties=reader.properties() if reader.take("WITH") else {})


def _end_green(verb: str, reader: _Reader) -> Statement:
    of_table = reader.peek(-1).word == "TABLE"
    name, deployment = (reader.table(), None) if of_table else (None, reader.name("A deployment"))
    asked, properties = {"FORCE": False, "VERIFY": False, "DRY": False}, dict[str, str]()
    while verb == "PROMOTE" and not reader.done:
        if reader.take("WITH"):
            properties |= reader.properties()
            continue
        asked[reader.mode(*asked)] = True
        if reader.peek(-1).word == "DRY":
            reader.need("RUN")
    force, verify, dry_run = asked.values()
    return EndGreen(
        verb=verb,
        name=name,
        deployment=deployment,
        force=force,
        verify=verify,
        dry_run=dry_run,
        properties=properties,
    )


def _create_source(reader: _Reader) -> Statement:
    if_not_exists = reader.if_not_exists()
    name = reader.name("A name for the source")
    reader.need("FROM")
    kind = read_kind(reader)
    request = kind.read_request(reader)
    return CreateSource(name=name, kind=kind.name, request=request, if_not_exists=if_not_exists)


def _text_columns(reader: _Reader) -> tuple[str, ...]:
    if not reader.take("TEXT"):
        return ()
    reader.need("COLUMNS")
    return reader.texts()


def _alter_source(reader: _Reader) -> Statement:
    name = reader.name("A source")
    change = reader.mode("ADD", "DROP", "RESNAPSHOT", "MOVE")
    if change == "MOVE" or (change != "RESNAPSHOT" and reader.word == "SHARD"):
        return _alter_shard(reader, name, change)
    tables: tuple[str, ...] = ()
    if change != "RESNAPSHOT" or reader.word == "TABLES":
        reader.need("TABLES")
        tables = reader.texts()
    shards = reader.texts() if change == "RESNAPSHOT" and reader.take("SHARDS") else ()
    text = _text_columns(reader) if change == "ADD" else ()
    return AlterSource(name=name, change=change, tables=tables, text_columns=text, shards=shards)


def _alter_shard(reader: _Reader, name: str, change: str) -> Statement:
    reader.need("SHARD")
    if change == "ADD":
        node = KINDS[0].read_node(reader) if isinstance(KINDS[0], KindOfNodes) else None
        return AlterShard(name=name, change=change, node=node)
    shard = reader.name("A shard")
    if change == "DROP":
        return AlterShard(name=name, change=change, shard=shard)
    reader.need("TO")
    return AlterShard(name=name, change=change, shard=shard, url=reader.string("A connection string"))


def _drop_source(reader: _Reader) -> Statement:
    if_exists = reader.if_exists()
    name = reader.name("A source")
    return DropSource(name=name, if_exists=if_exists)


def _create_sink(reader: _Reader) -> Statement:
    if_not_exists = reader.if_not_exists()
    name = reader.name("A name for the sink")
    reader.need("FROM")
    stream = reader.table()
    reader.need("INTO")
    place = place_at(reader.sql, reader.offset())
    try:
        kind = sink_kind_of(reader.name("A kind of sink").upper())
    except HeadraceError as error:
        if error.place is None:
            error.place = place
        raise
    reader.form = kind.create_form
    request = kind.read_request(reader)
    schedule = reader.string("A schedule") if reader.take("SCHEDULE") else None
    return CreateSink(
        name=name, stream=stream, kind=kind.name, request=request, schedule=schedule, if_not_exists=if_not_exists
    )


def _alter_sink(reader: _Reader) -> Statement:
    name = reader.name("A sink")
    change = reader.mode("SET", "DROP", "RESYNC", "PAUSE", "RESUME")
    if change == "DROP":
        reader.need("SCHEDULE")
    if change != "SET":
        return AlterSink(name=name, change=change)
    if reader.take("SCHEDULE"):
        return AlterSink(name=name, change=change, schedule=reader.string("A schedule"))
    return AlterSink(name=name, change=change, options=SINK_KINDS[0].read_change(reader))


def _drop_sink(reader: _Reader) -> Statement:
    if_exists = reader.if_exists()
    return DropSink(name=reader.name("A sink"), if_exists=if_exists)


def _create_group(reader: _Reader) -> Statement:
    name = ".".join(reader.table())
    reader.need("AS")
    members = reader.tables()
    return CreateRefreshGroup(name=name, members=members)


def _drop_group(reader: _Reader) -> Statement:
    if_exists = reader.if_exists()
    name = ".".join(reader.table())
    return DropRefreshGroup(name=name, if_exists=if_exists)


def _gate(reader: _Reader) -> Statement:
    closes = reader.peek(-2).word == "CLOSE"
    reader.need("ON")
    sources = reader.tables()
    return SetGate(sources=sources, closes=closes)


def _declare_key(reader: _Reader) -> Statement:
    columns, source = _key_of(reader)
    checked = not reader.take("NOT")
    if not checked:
        reader.need("CHECKED")
    return DeclareKey(source=source, columns=columns, check=checked)


def _drop_key(reader: _Reader) -> Statement:
    columns, source = _key_of(reader)
    return DropKey(source=source, columns=columns)


def _key_of(reader: _Reader) -> tuple[tuple[str, ...], Name]:
    columns: list[str] = []
    while not columns or reader.take(","):
        if not reader.peek().is_name:
            raise reader.fail("A column name was expected here")
        columns.append(reader.peek().name)
        reader.at += 1
    reader.need(")", "ON")
    return tuple(columns), reader.table()


def _create_watermarks(reader: _Reader) -> Statement:
    name = ".".join(reader.table())
    reader.need("(")
    sources = reader.tables()
    reader.need(")", "TOLERANCE")
    tolerance = reader.string("A duration")
    return CreateWatermarkGroup(name=name, sources=sources, tolerance=tolerance)


def _drop_watermarks(reader: _Reader) -> Statement:
    if_exists = reader.if_exists()
    name = ".".join(reader.table())
    return DropWatermarkGroup(name=name, if_exists=if_exists)


def _advance(reader: _Reader) -> Statement:
    reader.need("OF")
    source = reader.table()
    reader.need("TO")
    moment = reader.string("A moment")
    return AdvanceWatermark(source=source, moment=moment)


_STATEMENTS: tuple[tuple[tuple[str, ...], str, str, Callable[[_Reader], Statement]], ...] = (
    (("CREATE", "STREAM"), "TABLE", forms.CREATE, _create),
    (("CREATE", "OR", "REPLACE", "STREAM"), "TABLE", forms.CREATE, _create),
    (("ALTER", "STREAM"), "TABLE", forms.ALTER, _alter),
    (("DROP", "STREAM"), "TABLE", forms.DROP, _drop),
    (("REFRESH", "STREAM"), "TABLE", forms.REFRESH, _refresh),
    (("REFRESH", "ALL", "STREAM"), "TABLES", forms.REFRESH, _refreshed),
    (("REPAIR", "STREAM"), "TABLE", forms.REPAIR, _repair),
    (("REPAIR", "ALL", "STREAM"), "TABLES", forms.REPAIR, lambda _: RepairStreamTable()),
    (("EXPLAIN", "STREAM"), "TABLE", forms.EXPLAIN, _explain),
    (("EXPLAIN", "ANALYZE", "STREAM"), "TABLE", forms.EXPLAIN, _explain),
    (("EXPLAIN", "FULL", "STREAM"), "TABLE", forms.EXPLAIN, _explain),
    (("EXPLAIN", "DIFFERENTIAL", "STREAM"), "TABLE", forms.EXPLAIN, _explain),
    (("SHOW", "STREAM"), "TABLES", forms.SHOW, _show),
    (("SHOW", "CREATE", "STREAM"), "TABLE", forms.SHOW_CREATE, _show_create),
    (("CREATE", "GREEN", "STREAM"), "TABLE", forms.DEPLOYMENT, _create_green),
    (("CREATE", "NEW", "GREEN", "STREAM"), "TABLE", forms.DEPLOYMENT, _create_green),
    (("PROMOTE", "GREEN", "STREAM"), "TABLE", forms.DEPLOYMENT, partial(_end_green, "PROMOTE")),
    (("PROMOTE", "DEPLOYMENT"), "", forms.DEPLOYMENT, partial(_end_green, "PROMOTE")),
    (("ROLLBACK", "GREEN", "STREAM"), "TABLE", forms.DEPLOYMENT, partial(_end_green, "ROLLBACK")),
    (("ROLLBACK", "DEPLOYMENT"), "", forms.DEPLOYMENT, partial(_end_green, "ROLLBACK")),
    (("CANCEL", "GREEN", "STREAM"), "TABLE", forms.DEPLOYMENT, partial(_end_green, "CANCEL")),
    (("CANCEL", "DEPLOYMENT"), "", forms.DEPLOYMENT, partial(_end_green, "CANCEL")),
    (("ALTER", "DEPLOYMENT"), "", forms.DEPLOYMENT, _alter_deployment),
    (("SHOW", "DEPLOYMENTS"), "", forms.DEPLOYMENT, _show_deployments),
    (("CREATE", "SOURCE"), "", forms.CREATE_SOURCE, _create_source),
    (("ALTER", "SOURCE"), "", forms.ALTER_SOURCE, _alter_source),
    (("DROP", "SOURCE"), "", forms.DROP_SOURCE, _drop_source),
    (("SHOW", "SOURCES"), "", forms.SHOW_SOURCES, lambda _: ShowSources()),
    (("CREATE", "SINK"), "", forms.CREATE_SINK, _create_sink),
    (("ALTER", "SINK"), "", forms.ALTER_SINK, _alter_sink),
    (("DROP", "SINK"), "", forms.DROP_SINK, _drop_sink),
    (("VERIFY", "SINK"), "", forms.VERIFY_SINK, lambda reader: VerifySink(name=reader.name("A sink"))),
    (("SHOW", "SINKS"), "", forms.SHOW_SINKS, lambda _: ShowSinks()),
    (("CLOSE", "GATE"), "", forms.GATE, _gate),
    (("OPEN", "GATE"), "", forms.GATE, _gate),
    (("SHOW", "GATES"), "", forms.GATE, lambda _: ShowGates()),
    (("DECLARE", "KEY", "("), "", forms.KEY, _declare_key),  # without a bracket it is a variable of Spark's
    (("DROP", "KEY", "("), "", forms.KEY, _drop_key),
    (("SHOW", "KEYS"), "", forms.KEY, lambda _: ShowKeys()),
    (("CREATE", "WATERMARK"), "GROUP", forms.WATERMARK, _create_watermarks),
    (("DROP", "WATERMARK"), "GROUP", forms.WATERMARK, _drop_watermarks),
    (("ADVANCE", "WATERMARK"), "", forms.WATERMARK, _advance),
    (("SHOW", "WATERMARKS"), "", forms.WATERMARK, lambda _: ShowWatermarks()),
    (("CREATE", "REFRESH"), "GROUP", forms.CREATE_GROUP, _create_group),
    (("DROP", "REFRESH"), "GROUP", forms.DROP_GROUP, _drop_group),
)
"""Every statement: the words that make it ours, the words that must follow, its form for messages, and its reader."""

BEGINNINGS = tuple(" ".join((*words, follows)).replace(" (", "").strip() for words, follows, _, _ in _STATEMENTS)
"""The words with which statements begin that are not Spark's."""
