"""The examples of docs/examples are what the documentation says of them: they compile, and call what exists."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import click
import pytest

from headrace import config
from headrace.cli.main import app
from headrace.serve.monitoring.monitoring_routes import PATHS
from headrace.spark.jars import JARS

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))


def options_of(verb: click.Command) -> set[str]:
    own = {o for p in verb.params if isinstance(p, click.Option) for o in (*p.opts, *p.secondary_opts)}
    return own.union(*map(options_of, verb.commands.values())) if isinstance(verb, click.Group) else own


def unknown(words: list[str]) -> list[str]:
    """Return the words of a command that Headrace does not know: its verb, a verb below that, or an option."""
    verb = app.commands.get(words[0])
    if verb is None:
        return words[:1]
    if isinstance(verb, click.Group) and words[1] not in verb.commands:
        return words[1:2]
    known = options_of(verb) | options_of(app)
    return [w for w in words if w.startswith("-") and w not in known]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.name)
def test_a_script_compiles_and_calls_commands_that_exist(script: Path) -> None:
    tree = ast.parse(script.read_text(encoding="utf-8"))
    compile(tree, script.name, "exec")
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "headrace"]
    for call in calls:
        texts = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        words = shlex.split(texts[1]) if "airflow" in script.name else texts
        assert not unknown(words), ast.unparse(call)
    assert calls or "spark_submit" in script.name


def test_jars_that_are_named_are_those_that_are_pinned() -> None:
    text = (EXAMPLES / "spark_submit_headrace.py").read_text(encoding="utf-8")
    named = set(re.findall(r"[\w.-]+\.jar", text))
    assert named
    assert named <= {jar.file for jar in JARS}


def test_the_pod_runs_a_command_that_exists_with_settings_that_can_be_read(tmp_path: Path) -> None:
    text = (EXAMPLES / "kubernetes.yaml").read_text(encoding="utf-8")
    args = re.search(r"args: \[(.*)\]", text)
    assert args is not None
    assert not unknown([w.strip().strip('"') for w in args[1].split(",")])
    probes = re.findall(r"httpGet: {path: (/\w+)", text)
    assert len(probes) == 3
    assert set(probes) <= set(PATHS)
    block = re.search(r"headrace\.toml: \|\n((?:    .*\n|\n)+)", text)
    assert block is not None
    (tmp_path / "headrace.toml").write_text(re.sub(r"^    ", "", block[1], flags=re.MULTILINE), encoding="utf-8")
    settings = config.load(tmp_path, {"HEADRACE_CATALOG_URL": "postgresql://headrace:x@db:5432/headrace"})
    assert (settings.warehouse, settings.catalog_url[:13]) == ("/warehouse", "postgresql://")
    assert int(re.search(r"PeriodSeconds: (\d+)", text)[1]) > 60  # type: ignore[index]  # what --grace is


def test_the_image_runs_commands_that_exist() -> None:
    text = (EXAMPLES / "Dockerfile").read_text(encoding="utf-8")
    for command in re.findall(r"&& headrace ([^&\n]*)", text):
        words = shlex.split(command)
        verb = next(w for w in words if w in app.commands)
        assert not [w for w in words if w.startswith("-") and w not in options_of(app.commands[verb]) | options_of(app)]
    assert set(re.findall(r"headrace\[([\w,]+)\]", text)) == {"local,postgres,metrics"}
