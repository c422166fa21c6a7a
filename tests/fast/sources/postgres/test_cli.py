"""`headrace source` on a real server, as far as no Spark is needed."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner, Result
from kit.logical import LogicalServer

from headrace.cli.main import app
from headrace.project.new_project import init_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    init_project(tmp_path / "shop")
    return tmp_path / "shop"


def run(project: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["--project", str(project), *arguments])


def test_a_check_tells_the_sql_and_the_exit_status(project: Path, server: LogicalServer) -> None:
    url = server.fresh()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("CREATE TABLE keyless (a int); CREATE TABLE fine (id int PRIMARY KEY)")
    good = run(project, "source", "check", url, "-t", "fine")
    assert (good.exit_code, "fail" in good.output) == (0, False)
    bad = run(project, "source", "check", url, "-t", "public.keyless", "-t", "public.fine")
    assert bad.exit_code == 1
    assert 'ALTER TABLE "public"."keyless" REPLICA IDENTITY FULL;' in bad.output
    found = json.loads(run(project, "source", "check", url, "-t", "keyless", "--json").stdout)
    assert [c["name"] for c in found if not c["ok"]] == ["public.keyless"]


def test_sources_that_are_not_there(project: Path) -> None:
    assert "no database sources yet" in run(project, "source", "list").output
    for verb in ("status", "pause", "resume", "resnapshot", "drop", "land"):
        result = run(project, "source", verb, "nowhere")
        assert (result.exit_code, "SOURCE_UNKNOWN" in result.output) == (1, True)
    for verb in ("add-tables", "drop-tables", "resnapshot"):
        assert "SOURCE_UNKNOWN" in run(project, "source", verb, "nowhere", "-t", "t").output
    assert run(project, "source", "drop", "nowhere", "--if-exists").exit_code == 0
    assert run(project, "source", "land", "--json").stdout == "[]\n"


@pytest.mark.parametrize(
    ("url", "table", "code"),
    [
        ("postgresql://reader:secret@db/shop", "orders", "SOURCE_URL_INVALID"),
        ("postgresql://reader@127.0.0.1:9/shop", "orders", "SOURCE_UNREACHABLE"),
        ("postgresql://reader@127.0.0.1:9/shop", "a.b.c", "INVALID_NAME"),
        ("postgresql://reader@127.0.0.1:9/shop", 'public."odd name"', "INVALID_NAME"),
    ],
)
def test_what_cannot_be_added_leaves_nothing(project: Path, url: str, table: str, code: str) -> None:
    result = run(project, "source", "add", "shop", url, "-t", table)
    assert (result.exit_code, code in result.output, "secret" in result.output) == (1, True, False)
    assert run(project, "source", "list", "--json").stdout == "[]\n"
    assert b"secret" not in b"".join(f.read_bytes() for f in project.rglob("*") if f.is_file())


def test_shards_on_the_command_line(project: Path, server: LogicalServer) -> None:
    urls = [server.fresh(), server.fresh()]
    for url in urls:
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("CREATE TABLE fine (id int PRIMARY KEY)")
    shards = ("--shard", f"eu={urls[0]}", "--shard", urls[1])
    found = run(project, "source", "check", *shards, "-t", "fine", "--json")
    names = {check["name"]: check["ok"] for check in json.loads(found.stdout)}
    assert (found.exit_code, set(names.values())) == (0, {True})
    assert {"eu: wal_level", "s1: wal_level", "databases", "versions", "public.fine"} <= names.keys()
    both = run(project, "source", "check", urls[0], *shards, "-t", "fine")
    neither = run(project, "source", "add", "shop", "-t", "fine")
    assert [(r.exit_code, "Give a URL, or --shard" in r.output) for r in (both, neither)] == [(2, True)] * 2
    secret = run(project, "source", "add", "shop", "--shard", "eu=postgresql://u:secret@db/shop", "-t", "fine")
    assert (secret.exit_code, "SOURCE_URL_INVALID" in secret.output, "secret" in secret.output) == (1, True, False)
    for verb in (
        ("drop-shard", "nowhere", "eu"),
        ("move-shard", "nowhere", "eu", urls[0]),
        ("add-shard", "nowhere", urls[0]),
    ):
        assert "SOURCE_UNKNOWN" in run(project, "source", *verb).output


def test_shards_in_the_project_file(project: Path) -> None:
    file = project / "headrace.toml"
    text = file.read_text()
    shards = '[sources.shop]\ntables = ["orders"]\nshards = { eu = "postgresql://a/x", us = "env:US" }\n'
    file.write_text(f"{text}\n{shards}")
    steps = run(project, "source", "apply", "--dry-run", "--json")
    assert [(s["source"], s["action"]) for s in json.loads(steps.stdout)] == [("shop", "create")]
    for more in ('url = "postgresql://a/x"', "availability = 3", 'odd = "x"'):
        file.write_text(f"{text}\n{shards}{more}\n")
        refused = run(project, "source", "apply", "--dry-run")
        assert refused.exit_code == (1 if "availability" not in more else 0), refused.output
