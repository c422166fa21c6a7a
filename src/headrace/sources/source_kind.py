"""Interface of a kind of database source; nothing above it knows a kind.

A kind has a module with an object that satisfies `SourceKind`, and its line in `registry.KINDS`. Every command loads
that module, so it imports drivers and whatever else is slow inside its methods.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from headrace.errors import UserError

if TYPE_CHECKING:
    from headrace.names import TableName
    from headrace.sources.capture import Capture
    from headrace.sql.reader.syntax.statement_cursor import StatementCursor

Json = Mapping[str, Any]

Tables = Sequence[str] | Mapping[str, str]
"""Tables as the kind's grammar has them; or the names of the mirrors mapped to them."""

Told = Callable[[str], None]
"""Told how far a snapshot is, in words."""

OUT_OF_REACH = frozenset({"SOURCE_UNREACHABLE", "SOURCE_LOGIN_REFUSED", "SOURCE_LOST", "SOURCE_URL_INVALID"})
"""Codes of errors after which a server gives no answer a moment later, either."""


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """A source as a user asks for it, in a statement, Python, the command line or a file.

    Args:
        address: Where the database is; holds no password.
        tables: Its tables.
        options: Whatever else was said, by the names that the kind gives it.
    """

    address: str
    tables: Tables
    options: Json = field(default_factory=dict)


class KeptMirror(Protocol):
    """A mirror as the catalog keeps it."""

    @property
    def name(self) -> TableName:
        """Return the mirror."""
        ...

    @property
    def details(self) -> Json | None:
        """Return the details of its last `LandedTable`; None before the first landing."""
        ...

    @property
    def gone(self) -> bool:
        """Return whether its table was dropped."""
        ...


class KeptSource(Protocol):
    """A source as the catalog keeps it."""

    @property
    def name(self) -> str:
        """Return its name, which is the namespace of its mirrors."""
        ...

    @property
    def options(self) -> Json:
        """Return its options as the kind made them."""
        ...

    @property
    def position(self) -> Json | None:
        """Return the position of the last `Landing`; None before the first one."""
        ...

    @property
    def mirrors(self) -> Sequence[KeptMirror]:
        """Return its mirrors."""
        ...

    @property
    def looks(self) -> Sequence[Json]:
        """Return earlier looks at its server, oldest first."""
        ...

    @property
    def held(self) -> Mapping[str, str]:
        """Return the nodes of which nothing was landed last, with the codes of the errors."""
        ...


@dataclass(frozen=True, slots=True)
class Check:
    """One check before a source is created.

    Args:
        name: What it is about.
        ok: Whether it is as it must be.
        finding: How it is.
        remedy: What to run on the server; None where nothing is wrong, or no statement helps.
    """

    name: str
    ok: bool
    finding: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class HealthLine:
    """A line of `headrace source status`.

    Args:
        label: What it is about.
        text: How it is.
        missing: It should be there and is not, which is shown before the text.
    """

    label: str
    text: str = ""
    missing: bool = False


@dataclass(frozen=True, slots=True)
class ServerHealth:
    """Health of a source at its server, in the kind's own words.

    Args:
        figures: For programs: attributes of `SourceHealth` and fields of `--json`.
        lines: For people.
        look: What is remembered to tell how fast things change; None where nothing can be lost.
    """

    figures: Json
    lines: tuple[HealthLine, ...]
    look: Json | None = None


@dataclass(frozen=True, slots=True)
class ImpendingLoss:
    """A loss of changes that threatens if nothing more is landed.

    Args:
        what: Its name on the server.
        left: Bytes until then; None without a limit.
        seconds: Seconds until then at the rate of the last minutes; None where that is not known.
        reason: Why, in words.
    """

    what: str
    left: int | None
    seconds: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Outlook:
    """Conclusions from looks at a server.

    Args:
        remembered: The looks to remember from now on, oldest first.
        loss: What will be lost soon; None where all is well.
    """

    remembered: tuple[Json, ...]
    loss: ImpendingLoss | None = None


@dataclass(frozen=True, slots=True)
class TableChanges:
    """Differences between a source and its declaration.

    Args:
        added: Tables that are missing, as they are declared.
        undeclared: Mirrors of tables that are not declared.
    """

    added: tuple[str, ...]
    undeclared: tuple[str, ...]


class SourceKind(Protocol):
    """A kind of database source."""

    @property
    def name(self) -> str:
        """Return the kind's name, as in catalogs and `kind = …`; in statements in capitals."""
        ...

    @property
    def create_form(self) -> str:
        """Return the form of its CREATE SOURCE, as errors show it."""
        ...

    @property
    def add_form(self) -> str:
        """Return the form of its ALTER SOURCE … ADD, as errors show it."""
        ...

    @property
    def stopping(self) -> frozenset[str]:
        """Return codes of errors that stop the source, since changes may have been missed."""
        ...

    # ---- what users write

    def read_request(self, cursor: StatementCursor) -> SourceRequest:
        """Read what follows `FROM KIND` to the end of the statement.

        Raises:
            UserError: `SYNTAX_ERROR`.
        """
        ...

    def mirror_names(self, tables: Tables) -> tuple[str, ...]:
        """Name the mirrors of tables.

        Raises:
            UserError: Of what is no table in the kind's grammar, or `DUPLICATE_TABLE`.
        """
        ...

    def check(self, request: SourceRequest) -> tuple[Check, ...]:
        """Check whether tables can be captured, and list what to run on the server if not."""
        ...

    # ---- options that the catalog keeps: JSON that only the kind reads, without secrets

    def options(self, name: str, request: SourceRequest) -> Json:
        """Make the options of a new source.

        Args:
            name: The source's name.
            request: What the user asked for.

        Returns:
            Options as the catalog keeps them, JSON.

        Raises:
            UserError: `INVALID_OPTION`, or whatever else is wrong with the request.
        """
        ...

    def with_tables(self, options: Json, tables: Tables, said: Json) -> Json:
        """Add tables to options.

        Args:
            options: As they are.
            tables: The further tables.
            said: Whatever else was said of them, as in `SourceRequest`.
        """
        ...

    def without_tables(self, options: Json, mirrors: Sequence[str]) -> Json:
        """Remove tables from options.

        Args:
            options: As the catalog has them.
            mirrors: The mirrors of these tables.
        """
        ...

    def named_mirrors(self, source: KeptSource, tables: Sequence[str]) -> tuple[str, ...]:
        """Find the mirrors that a user means.

        Args:
            source: The source.
            tables: Mirrors by their own names, or by those of their tables.

        Raises:
            UserError: `SOURCE_TABLE_UNKNOWN`.
        """
        ...

    def changes(self, source: KeptSource, declared: SourceRequest) -> TableChanges:
        """Compare a source with its declaration.

        Args:
            source: The source.
            declared: What `headrace.toml` declares.

        Raises:
            UserError: `SOURCE_DIFFERS` where adding and dropping tables cannot make them equal (`differs`).
        """
        ...

    def said_of(self, tables: Tables, said: Json) -> Json:
        """Pick the options that concern some tables, for `with_tables`.

        Args:
            tables: These tables.
            said: Options of a whole source, as the user gave them.
        """
        ...

    def address(self, options: Json) -> str:
        """Return where the database is, as lists show it."""
        ...

    def captured(self, source: KeptSource) -> Mapping[str, tuple[str, ...]]:
        """Return captured tables, by connection string, under all names that are known of them."""
        ...

    def position_text(self, position: Json | None) -> str | None:
        """Write a position as the database does; None where there is none."""
        ...

    def followed(self, source: KeptSource) -> Mapping[str, str]:
        """Find mirrors whose table has another name by now than the source was created with.

        Args:
            source: The source.

        Returns:
            Their tables' names when they were last landed, by mirror.
        """
        ...

    # ---- at the server

    def open_capture(self, source: KeptSource, folder: str, told: Told, landings: int = 0) -> Capture:
        """Open the capture of a source.

        Args:
            source: The source.
            folder: Where its landings may have files on their way to the mirrors.
            told: Told how far a snapshot is.
            landings: How many landings of the source this process has published. The first ones had better be small, so
                that a process that does not last long has published something.
        """
        ...

    def health(self, source: KeptSource, folder: str) -> ServerHealth:
        """Read how a source stands at its server.

        Args:
            source: The source.
            folder: Where captures write files on the way.

        Raises:
            EnvironmentFault: `SOURCE_UNREACHABLE`, `SOURCE_LOGIN_REFUSED`.
        """
        ...

    def look(self, source: KeptSource, *, landed: bool) -> Json | None:
        """Read what the server keeps for a source; None where nothing can be lost.

        Args:
            source: The source.
            landed: It was just landed: the server may take it for read although there was nothing to read.

        Raises:
            EnvironmentFault: `SOURCE_UNREACHABLE`, `SOURCE_LOGIN_REFUSED`.
        """
        ...

    def outlook(self, source: KeptSource, look: Json) -> Outlook:
        """Estimate from looks at the server whether something will be lost soon.

        Args:
            source: The source, with earlier looks.
            look: A new one, as `look` returned it.
        """
        ...


@runtime_checkable
class KindOfNodes(Protocol):
    """A kind whose sources may have several nodes, which come and go."""

    def read_node(self, cursor: StatementCursor) -> object:
        """Read a node as a statement names it.

        Raises:
            UserError: `SYNTAX_ERROR`.
        """
        ...

    def with_node(self, source: str, options: Json, node: object) -> Json:
        """Add a node to options.

        Args:
            source: The source.
            options: As they are.
            node: What `read_node` returned, or a user's words for it.
        """
        ...

    def moved_node(self, source: str, options: Json, node: str, address: str) -> Json:
        """Put another server in place of a node's."""
        ...

    def without_node(self, source: str, options: Json, node: str) -> Json:
        """Remove a node from options."""
        ...

    def require_nodes(self, source: str, options: Json, nodes: Collection[str]) -> None:
        """Refuse names that no node of a source has.

        Raises:
            UserError: `SHARD_UNKNOWN`.
        """
        ...


def differs(source: str, what: str, remedy: str) -> UserError:
    """Return the error for a source that is not what `headrace.toml` declares.

    Args:
        source: The source.
        what: What differs, as a phrase: "its database".
        remedy: What the user can do, as an imperative without a capital.
    """
    return UserError(
        "SOURCE_DIFFERS",
        f"Source {source} exists, but {what} is not what headrace.toml declares; nothing was changed.",
        hint=f"To have it as declared, {remedy}.",
    )
