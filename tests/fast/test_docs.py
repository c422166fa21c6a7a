"""The documentation names what exists, and everything that users meet is documented."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import click
import pytest
from kit import syntax_trees

from headrace import config
from headrace.api.database_sinks import Sinks
from headrace.api.database_sources import Sources
from headrace.api.facade import Headrace
from headrace.cli.main import app
from headrace.error_codes.document import document
from headrace.reasons import FullReason
from headrace.statements import forms

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "headrace"
DOCS = tuple(sorted((*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"))))

FAMILIES = ("UserError", "Unsupported", "EnvironmentFault", "InternalError")
CODE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*")


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def named(paths: tuple[Path, ...]) -> dict[str, Path]:
    return {str(path.relative_to(ROOT)): path for path in paths}


# ---- error codes


@dataclass(frozen=True)
class Raised:
    """A place in the code that gives an error its code."""

    code: str
    family: str
    retryable: bool
    place: str


@cache
def raised() -> tuple[Raised, ...]:
    return tuple(r for path in sorted(SOURCE.rglob("*.py")) for r in _raised(path))


def _raised(path: Path) -> Iterator[Raised]:
    text, name = path.read_text(encoding="utf-8"), path.relative_to(ROOT)
    tree = syntax_trees.tree(text)
    for node in syntax_trees.nodes(text):
        place = f"{name}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            function = node.func.id
            if function in FAMILIES:
                keywords = {k.arg: k.value for k in node.keywords}
                if isinstance(keywords.get("retryable"), ast.Attribute):
                    continue  # made of a row of a table, whose rows are looked at themselves
                for code in _codes(node.args[0], tree):
                    yield Raised(code, function, _retryable(keywords.get("retryable"), code, tree), place)
            elif function == "ErrorKind":
                yield from _kind(node, place)
            elif function == "StoreFault" and isinstance(node.args[0], ast.Constant):
                retry = next((k.value for k in node.keywords if k.arg == "retryable"), None)
                retried = isinstance(retry, ast.Constant) and bool(retry.value)
                yield Raised(str(node.args[0].value), "EnvironmentFault", retried, place)
        elif isinstance(node, ast.Dict):  # the command line's own errors are written as JSON
            fields = {k.value: v for k, v in zip(node.keys, node.values, strict=True) if isinstance(k, ast.Constant)}
            code = fields.get("code")
            if isinstance(code, ast.Constant) and isinstance(code.value, str) and "retryable" in fields:
                retry = fields["retryable"]
                yield Raised(code.value, "", isinstance(retry, ast.Constant) and bool(retry.value), place)


def _kind(node: ast.Call, place: str) -> Iterator[Raised]:
    code, family = node.args[0], node.args[1]
    retry = next((k.value for k in node.keywords if k.arg == "retryable"), None)
    if isinstance(code, ast.Constant) and isinstance(family, ast.Name):
        yield Raised(code.value, family.id, isinstance(retry, ast.Constant) and bool(retry.value), place)


def _codes(argument: ast.expr, tree: ast.Module) -> set[str]:
    """The codes an argument may be; where it is a variable, all that the module spells and gives nowhere else."""
    return _spelled(argument) or _spelled_nowhere_else(tree)


@cache
def _spelled_nowhere_else(tree: ast.Module) -> set[str]:
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.args]
    elsewhere = {code for call in calls if call.func.id in FAMILIES for code in _spelled(call.args[0])}
    return {code for code in _spelled(tree) if "_" in code} - elsewhere


def _spelled(node: ast.AST) -> set[str]:
    texts = {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return {t for t in texts if CODE.fullmatch(t)}


def _retryable(value: ast.expr | None, code: str, tree: ast.Module) -> bool:
    if value is None or isinstance(value, ast.Constant):
        return value is not None and bool(value.value)
    names = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
    lists = [n.value for n in tree.body if isinstance(n, ast.Assign) and {t.id for t in _names(n)} & names]
    return any(code in _spelled(each) for each in lists)


def _names(node: ast.Assign) -> list[ast.Name]:
    return [t for t in node.targets if isinstance(t, ast.Name)]


@dataclass(frozen=True)
class Documented:
    """A row of docs/errors.md."""

    code: str
    section: str
    cells: tuple[str, ...]


@cache
def documented() -> tuple[Documented, ...]:
    rows, section = [], ""
    for line in text_of("docs/errors.md").splitlines():
        if line.startswith("## "):
            section = line
        elif match := re.match(r"\| `([A-Z_0-9]+)` \|(.*)\|$", line):
            cells = tuple(c.strip() for c in re.split(r"(?<!\\)\|", match[2]))
            rows.append(Documented(match[1], section, cells))
    return tuple(rows)


def test_the_page_of_errors_is_written_from_the_table() -> None:
    assert text_of("docs/errors.md") == document(), "python -m headrace.error_codes.document > docs/errors.md"


def test_every_error_code_is_documented() -> None:
    known = {row.code for row in documented()}
    missing = {r.code: r.place for r in raised() if r.code not in known}
    assert not missing, "give these a row in headrace/error_codes"


def test_every_documented_code_is_raised() -> None:
    assert not {row.code for row in documented()} - {r.code for r in raised()}


def test_every_code_has_one_row_in_the_section_of_its_class() -> None:
    codes = [row.code for row in documented()]
    assert len(codes) == len(set(codes))
    sections = {row.code: row.section for row in documented()}
    assert not [r for r in raised() if r.family and r.code in sections and f"`{r.family}`" not in sections[r.code]]


def test_what_is_said_of_retrying_is_so() -> None:
    found: dict[str, set[bool]] = {}
    for r in raised():
        found.setdefault(r.code, set()).add(r.retryable)
    said = {frozenset({True}): "yes", frozenset({False}): "no", frozenset({True, False}): "sometimes"}
    expected = {code: said[frozenset(flags)] for code, flags in found.items()}
    assert not {
        row.code: f"should be {expected[row.code]}"
        for row in documented()
        if row.code in expected and row.cells[-1] != expected[row.code]
    }


def test_every_row_says_what_happened() -> None:
    assert not [row.code for row in documented() if len(row.cells) != 4 or not row.cells[0]]


# ---- reasons, settings, statements, methods


def test_every_reason_for_full_is_documented() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \|", text_of("docs/refreshing.md"), re.MULTILINE)
    reasons = {reason.value for reason in FullReason}
    assert reasons <= set(rows)
    assert reasons | {"AUTO", "DIFFERENTIAL", "FULL"} >= set(rows)


def test_reasons_named_elsewhere_exist() -> None:
    known = {r.value for r in FullReason} | {r.code for r in raised()}
    rows = re.findall(r"^\|.*\| ((?:`[A-Z_]+`(?:, )?)+) \|$", text_of("docs/supported.md"), re.MULTILINE)
    assert rows
    assert not {code for row in rows for code in re.findall(r"`([A-Z_]+)`", row)} - known


@pytest.mark.parametrize("key", config.KNOWN)
def test_every_setting_is_documented(key: str) -> None:
    assert f"| `{key}` | `HEADRACE_{key.upper()}` |" in text_of("docs/configuration.md")


def test_settings_named_in_the_documentation_exist() -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \| `HEADRACE_", text_of("docs/configuration.md"), re.MULTILINE)
    assert set(rows) == set(config.KNOWN)


@pytest.mark.parametrize(
    "form",
    [
        "CREATE",
        "ALTER",
        "DROP",
        "REFRESH",
        "EXPLAIN",
        "SHOW",
        "CREATE_SOURCE",
        "ALTER_SOURCE",
        "DROP_SOURCE",
        "SHOW_SOURCES",
        "CREATE_SINK",
        "GATE",
        "KEY",
        "WATERMARK",
        "CREATE_GROUP",
        "DROP_GROUP",
    ],
)
def test_statements_have_the_forms_that_messages_show(form: str) -> None:
    assert getattr(forms, form) in text_of("docs/sql.md")


INNER = {"add_node", "batches", "land_for", "land_due", "due", "refuse_own_tables", "write_batch", "write_for"}
"""Methods that other parts of Headrace call, and users have no need of."""


def items_of(section: str | None) -> list[str]:
    """The items and rows of a section of the reference; None: of all sections."""
    parts = re.findall(r"^## (.*?)$(.*?)(?=^## |\Z)", text_of("docs/python.md"), flags=re.MULTILINE | re.DOTALL)
    text = "".join(part for title, part in parts if section in (None, title))
    return re.split(r"^(?=- |\|)", text, flags=re.MULTILINE)


@pytest.mark.parametrize(("of", "section"), [(Headrace, None), (Sources, "Database sources"), (Sinks, "Sinks")])
def test_every_method_and_parameter_is_documented(of: type, section: str | None) -> None:
    items, missing = items_of(section), []
    for name in (name for name in dir(of) if not name.startswith("_") and name not in INNER):
        told = [item for item in items if re.search(rf"\b{name}[`(]", item)]
        method = getattr(of, name)
        asked = inspect.signature(method).parameters.keys() - {"self"} if callable(method) else set[str]()
        words = asked if told else {name}
        missing += [f"{name}: {word}" for word in words if not any(re.search(rf"\b{word}\b", item) for item in told)]
    assert not missing


# ---- headrace.toml


@pytest.mark.parametrize("page", ["docs/configuration.md", "docs/sinks.md", "docs/postgresql.md", "docs/scheduling.md"])
def test_examples_of_settings_can_be_read(page: str, tmp_path: Path) -> None:
    for block in re.findall(r"^```toml\n(.*?)^```", text_of(page), flags=re.MULTILINE | re.DOTALL):
        (tmp_path / "headrace.toml").write_text(block, encoding="utf-8")
        config.load(tmp_path, environ={})


# ---- the command line

GROUP_OPTIONS = {o for p in app.params for o in (*p.opts, *p.secondary_opts)} | {"--help", "-h"}


def options_of(verb: click.Command) -> set[str]:
    own = {o for p in verb.params if isinstance(p, click.Option) for o in (*p.opts, *p.secondary_opts)}
    return own.union(*map(options_of, verb.commands.values())) if isinstance(verb, click.Group) else own


def verb_sections() -> Mapping[str, str]:
    parts = re.split(r"^## ([\w-]+)$", text_of("docs/cli.md"), flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def test_every_verb_and_no_other_has_a_section() -> None:
    assert verb_sections().keys() - {""} == app.commands.keys()


@pytest.mark.parametrize("verb", ["", *app.commands])
def test_options_are_documented_where_they_are(verb: str) -> None:
    rows = "\n".join(re.findall(r"^\| (`-.*?) \|", verb_sections()[verb], re.MULTILINE))
    told = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", rows))
    assert told == (options_of(app.commands[verb]) if verb else GROUP_OPTIONS)


def command_lines(text: str) -> Iterator[str]:
    """Calls of the command in a text, in code blocks and in running text."""
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        joined = re.sub(r'"[^"]*"', '"…"', block)
        yield from (line.strip() for line in joined.splitlines())
    yield from re.findall(r"`(headrace [^`]*)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


@pytest.mark.parametrize("path", DOCS, ids=named(DOCS))
def test_commands_in_the_documentation_exist(path: Path) -> None:
    wrong = []
    for line in command_lines(path.read_text(encoding="utf-8")):
        for command in re.split(r"&&|\|\||[;|]", re.sub(r"\s#.*", "", line)):
            words = shlex.split(command.replace("…", "x").replace("[", "").replace("]", ""))
            if words[:1] == ["headrace"]:
                wrong += _unknown(words[1:], line)
            elif words[:1] == ["make"]:
                wrong += [f"{line}: {w}" for w in words[1:2] if not re.search(rf"^{w}:", text_of("Makefile"), re.M)]
    assert not wrong


def _unknown(words: list[str], line: str) -> list[str]:
    verb = next((w for w in words if not w.startswith("-")), None)
    if verb in (None, "VERB"):
        return []
    if verb not in app.commands:
        return [f"{line}: {verb}"]
    known = options_of(app.commands[verb]) | GROUP_OPTIONS
    return [f"{line}: {w}" for w in words if re.match(r"--?[a-z]", w) and w.split("=")[0] not in known]


def test_commands_and_names_in_messages_exist() -> None:
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        nodes = syntax_trees.nodes(path.read_text(encoding="utf-8"))
        for text in (n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)):
            for command in re.findall(r"`(headrace [^`\n]*)`", text):
                wrong += _unknown(shlex.split(command)[1:], command)
            wrong += [f"{path}: {n}" for n in re.findall(r"headrace(?:\.[a-z_]+)+", text) if not _exists(n)]
    assert not wrong


def _exists(name: str) -> bool:
    """Whether a dotted name is a module, a public name of one, or a file of a project."""
    if name in (config.FILE_NAME, "headrace.db"):
        return True
    module, _, attribute = name.rpartition(".")
    if importlib.util.find_spec(module) is None:
        return False
    return hasattr(importlib.import_module(module), attribute) or importlib.util.find_spec(name) is not None


# ---- links and paths


def anchors(path: Path) -> set[str]:
    """The anchors of a file's headings, as GitHub makes them."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", DOCS, ids=named(DOCS))
def test_relative_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    dead = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"^\[[^\]]+\]: (\S+)$", text, re.MULTILINE):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = path.parent / file if file else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)
    assert not dead


@pytest.mark.parametrize("path", DOCS, ids=named(DOCS))
def test_files_named_in_the_documentation_exist(path: Path) -> None:
    spelled = re.findall(
        r"`((?:src|tests|docs|scripts|bench|requirements)/[\w./-]*)`", path.read_text(encoding="utf-8")
    )
    assert not [name for name in spelled if not (ROOT / name).exists()]


@pytest.mark.parametrize("path", DOCS, ids=named(DOCS))
def test_every_document_is_linked(path: Path) -> None:
    if path.parent == ROOT / "docs":
        assert f"docs/{path.name}" in text_of("README.md")


def test_the_site_has_every_document_in_its_navigation() -> None:
    pages = re.findall(r"^ +- .*: ([\w./-]+\.md)$", text_of("mkdocs.yml"), re.MULTILINE)
    of_root = {"ARCHITECTURE.md", "BENCHMARKS.md", "CHANGELOG.md", "CONTRIBUTING.md"}
    expected = {path.name for path in DOCS if path.parent == ROOT / "docs"} | of_root | {"decisions/README.md"}
    assert sorted(pages) == sorted(expected), "give each page a line in the nav of mkdocs.yml"


def test_the_site_loads_nothing_from_elsewhere() -> None:
    pictures = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "images").glob("*.svg"))
    texts = text_of("mkdocs.yml") + text_of("docs/javascripts/iframe-worker.js") + pictures
    assert set(re.findall(r"https?://[^\s\"]+", texts)) == {"http://www.w3.org/2000/svg"}
