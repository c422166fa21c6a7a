"""Parsed statements as values, Spark's among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.sinks.sink_kind import SinkRequest
from headrace.sources.source_kind import SourceRequest
from headrace.statements.forms import Name


@dataclass(frozen=True, slots=True)
class Query:
    """A query inside a statement.

    Args:
        sql: Its text as written.
        start: Offset of its first character in the script.
    """

    sql: str
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A statement of a script.

    Args:
        sql: Its text.
        start: Offset of its first character in the script.
    """

    sql: str = ""
    start: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkStatement(Statement):
    """A statement that Spark runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateStreamTable(Statement):
    """CREATE STREAM TABLE; `refresh_mode` is upper-case."""

    name: Name
    query: Query
    schedule: str | None = None
    refresh_mode: str = "AUTO"
    or_replace: bool = False
    if_not_exists: bool = False
    properties: dict[str, str] = field(default_factory=dict)
    initialize: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterStreamTable(Statement):
    """ALTER STREAM TABLE; None leaves a setting as it is."""

    name: Name
    schedule: str | None = None
    refresh_mode: str | None = None
    query: Query | None = None
    drop_schedule: bool = False
    properties: dict[str, str] = field(default_factory=dict)
    drop_properties: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveFuse(Statement):
    """ALTER STREAM TABLE … RESOLVE FUSE; `resolution` as written, upper-case."""

    name: Name
    resolution: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropStreamTable(Statement):
    """DROP STREAM TABLE; `cascade` drops its consumers too."""

    name: Name
    if_exists: bool = False
    cascade: bool = False
    deployment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshStreamTable(Statement):
    """REFRESH STREAM TABLE; no names means all of them."""

    names: tuple[Name, ...] = ()
    full: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairStreamTable(Statement):
    """REPAIR STREAM TABLE; no names means all that are damaged."""

    names: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainStreamTable(Statement):
    """EXPLAIN STREAM TABLE, of a table or of a query; `refresh_mode` as asked for."""

    name: Name | None = None
    query: Query | None = None
    refresh_mode: str | None = None
    analyze: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowStreamTables(Statement):
    """SHOW STREAM TABLES; the pattern is Spark's, with `*` and `|`."""

    namespace: Name | None = None
    like: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowCreateStreamTable(Statement):
    """SHOW CREATE STREAM TABLE."""

    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateGreen(Statement):
    """CREATE GREEN STREAM TABLE; None leaves what the public stream table has."""

    name: Name
    deployment: str = "green"
    query: Query | None = None
    schedule: str | None = None
    refresh_mode: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    initialize: bool = True
    auto_promote: dict[str, str] | None = None
    new: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterDeployment(Statement):
    """ALTER DEPLOYMENT; None for NO AUTO PROMOTE."""

    deployment: str
    auto_promote: dict[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndGreen(Statement):
    """PROMOTE, ROLLBACK or CANCEL, of a green stream table or of a deployment."""

    verb: str
    name: Name | None = None
    deployment: str | None = None
    force: bool = False
    verify: bool = False
    dry_run: bool = False
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowDeployments(Statement):
    """SHOW DEPLOYMENTS."""

    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSource(Statement):
    """CREATE SOURCE, as its kind has read it."""

    name: str
    kind: str
    request: SourceRequest
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterSource(Statement):
    """ALTER SOURCE; `change` is ADD, DROP or RESNAPSHOT, which without tables means all of them."""

    name: str
    change: str
    tables: tuple[str, ...] = ()
    text_columns: tuple[str, ...] = ()
    shards: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterShard(Statement):
    """ALTER SOURCE … SHARD; `change` is ADD with a node, DROP, or MOVE with a URL."""

    name: str
    change: str
    shard: str = ""
    url: str = ""
    node: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSource(Statement):
    """DROP SOURCE."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSink(Statement):
    """CREATE SINK, as its kind has read it."""

    name: str
    stream: Name
    kind: str
    request: SinkRequest
    schedule: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterSink(Statement):
    """ALTER SINK; `change` is SET, DROP, RESYNC, PAUSE or RESUME."""

    name: str
    change: str
    schedule: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSink(Statement):
    """DROP SINK."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifySink(Statement):
    """VERIFY SINK."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRefreshGroup(Statement):
    """CREATE REFRESH GROUP."""

    name: str
    members: tuple[Name, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DropRefreshGroup(Statement):
    """DROP REFRESH GROUP."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetGate(Statement):
    """CLOSE GATE, OPEN GATE; a name of one part may be that of a database source."""

    sources: tuple[Name, ...]
    closes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowGates(Statement):
    """SHOW GATES."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclareKey(Statement):
    """DECLARE KEY."""

    source: Name
    columns: tuple[str, ...]
    check: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DropKey(Statement):
    """DROP KEY."""

    source: Name
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowKeys(Statement):
    """SHOW KEYS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateWatermarkGroup(Statement):
    """CREATE WATERMARK GROUP."""

    name: str
    sources: tuple[Name, ...]
    tolerance: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropWatermarkGroup(Statement):
    """DROP WATERMARK GROUP."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvanceWatermark(Statement):
    """ADVANCE WATERMARK."""

    source: Name
    moment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowWatermarks(Statement):
    """SHOW WATERMARKS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowSinks(Statement):
    """SHOW SINKS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowSources(Statement):
    """SHOW SOURCES."""
