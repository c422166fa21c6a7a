"""`serve: true`: the project's server runs the statements, and no Spark starts here."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from dbt.adapters.headrace import projects
from jaffle import EXAMPLE, Shop

from headrace.cli.main import app
from headrace.project.new_project import init_project


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """The example over a project whose server is started by the first statement."""
    init_project(tmp_path / "shop")
    shutil.copytree(EXAMPLE, tmp_path / "jaffle", ignore=shutil.ignore_patterns("target", "logs"))
    profile = tmp_path / "jaffle" / "profiles.yml"
    profile.write_text(profile.read_text() + "      serve: true\n", encoding="utf-8")
    monkeypatch.setenv("HEADRACE_PROJECT", str(tmp_path / "shop"))
    monkeypatch.delenv("HEADRACE_NO_SERVE", raising=False)
    monkeypatch.setenv("PYTHONPATH", ":".join(path for path in sys.path if path))
    yield Shop(tmp_path / "shop", tmp_path / "jaffle")
    app(["-p", str(tmp_path / "shop"), "serve", "--stop"], standalone_mode=False)


def test_the_example_is_built_by_the_server(served: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projects, "_opened", None)  # nothing is opened in this process
    first = served.dbt("build")
    assert first.success, first.text
    assert first.results["orders"] == "CREATED 4 rows"
    second = served.dbt("build")
    made = {name: message for name, message in second.results.items() if second.statuses[name] == "success"}
    assert {message.split()[0].rstrip(",") for message in made.values()} == {"UNCHANGED"}, made
    seed = served.folder / "seeds" / "raw_payments.csv"
    seed.write_text(seed.read_text() + "6,1,coup'on,500\n", encoding="utf-8")
    changed = served.dbt("build", "--select", "raw_payments+")
    assert changed.results["raw_payments"] == "OVERWRITTEN 6", changed.text
    assert changed.results["orders"].startswith("REFRESHED")
    assert served.dbt("run-operation", "headrace_verify").success
    assert served.dbt("docs", "generate").success
    merged = "materialized='incremental', file_format='iceberg', incremental_strategy='merge', unique_key='order_id'"
    served.model("merged", f"{{{{ config({merged}) }}}} select order_id, amount from {{{{ ref('orders') }}}}")
    for _ in range(2):
        assert served.dbt("run", "--select", "merged").success
    served.model("bad", "{{ config(materialized='stream_table') }} select nothing from {{ ref('orders') }}")
    bad = served.dbt("run", "--select", "bad")
    assert "[COLUMN_NOT_FOUND]" in bad.results["bad"]
    assert "Traceback" not in bad.text
