"""Deployments that promote themselves, as they are told on the command line and in SQL; no JVM starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from catalog_kit.clock import START
from catalog_kit.samples import create, lake

from headrace.catalog import Catalog, Green, Publication
from headrace.definitions.details import Details, to_json
from headrace.deploy.blue_settings import settings_of
from headrace.semantics import Semantics

from .conftest import Run


@pytest.fixture
def deployed(project: Path) -> Path:
    """A public stream table and its green, neither of them loaded."""
    with Catalog.open(f"sqlite:///{project / 'headrace.db'}") as catalog:
        for name, deployment in (("s.b", ""), ("s__green.b", "green")):
            details = Details("SELECT 1", (), Semantics(), (), (), {}, (), None, deployment=deployment)
            create(catalog, lake(name), lake("s.a"), details=to_json(details))
        blue = settings_of(catalog.stream_table(lake("s.b")))
        catalog.publish(Publication(greens=(Green(lake("s__green.b"), "green", lake("s.b"), blue, START),)))
    return project


def test_conditions_are_set_shown_and_ended_everywhere(run: Run, deployed: Path) -> None:
    def shown() -> Any:
        (info,) = json.loads(run("deploy", "status", "--json", "-p", deployed).stdout)
        return info["auto_promote"]

    assert shown() is None
    said = run("deploy", "auto", "green", "--when", "Window=02:00-04:00", "--when", "watch=10 minutes", "-p", deployed)
    assert said.output == "Deployment green is promoted by schedulers once its conditions hold.\n"
    assert shown() == {"window": "02:00-04:00", "watch": "10 minutes"}
    text = run("deploy", "status", "-p", deployed).output
    assert "Deployment green promotes itself (window = 02:00-04:00, watch = 10 minutes)." in text
    run("sql", "ALTER DEPLOYMENT green AUTO PROMOTE (lag_threshold = '1 minute')", "-p", deployed)
    assert shown() == {"lag_threshold": "1 minute"}
    assert "lag_threshold = 1 minute" in run("sql", "SHOW DEPLOYMENTS", "-p", deployed).output
    run("deploy", "auto", "green", "--off", "-p", deployed)
    assert shown() is None


@pytest.mark.parametrize(
    ("words", "exit_code", "why"),
    [
        (("auto", "green", "--when", "window"), 2, "is no KEY=VALUE"),
        (("auto", "green", "--off", "--when", "verify=true"), 2, "takes no conditions"),
        (("create", "s.b", "--when", "verify=true"), 2, "belongs to --auto-promote"),
        (("auto", "green", "--when", "watch=soon"), 1, "INVALID_OPTION"),
        (("promote", "s.b", "--watch", "2 days"), 1, "INVALID_OPTION"),
        (("promote", "s.b", "--rollback-window", "soon"), 1, "INVALID_OPTION"),
        (("status", "--lag-threshold", "much"), 1, "INVALID_OPTION"),
        (("create", "s.c", "--new"), 1, "INVALID_OPTION"),
        (("create", "s.c"), 1, "--new"),
        (("create", "s.b", "--set", "tier=tepid"), 1, "tier cannot be 'tepid'"),
        (("drop", "s.b", "-d", "v2"), 1, "IN_DEPLOYMENT"),
        (("drop", "s.c"), 1, "STREAM_TABLE_NOT_FOUND"),
    ],
)
def test_what_makes_no_sense_is_refused(
    run: Run, deployed: Path, words: tuple[str, ...], exit_code: int, why: str
) -> None:
    result = run("deploy", *words, "-p", deployed)
    assert (result.exit_code, why in result.output) == (exit_code, True), result.output


def test_a_table_is_to_go_and_stays(run: Run, deployed: Path) -> None:
    with Catalog.open(f"sqlite:///{deployed / 'headrace.db'}") as catalog:
        details = Details("SELECT 1", (), Semantics(), (), (), {}, (), None)
        create(catalog, lake("s.old"), lake("s.a"), details=to_json(details))
    said = run("deploy", "drop", "s.old", "-d", "v2", "-p", deployed)
    assert said.output == "The promotion of v2 is to drop s.old.\n"

    def roles() -> dict[str, str]:
        return {
            info["name"]: info["role"] for info in json.loads(run("deploy", "status", "--json", "-p", deployed).stdout)
        }

    assert roles() == {"s.b": "exchange", "s.old": "drop"}
    ended = run("deploy", "cancel", "s.old", "-p", deployed)
    assert ended.output == "Ended; there was nothing to drop.\n"
    assert roles() == {"s.b": "exchange"}
    assert "s.old" in run("status", "-p", deployed).output
