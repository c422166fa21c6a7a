"""The deployment act of the demonstration, as far as it needs no Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from fast.cli.samples import refreshed
from fast.cli.test_render import drawn

from headrace.cli.main import app
from headrace.cli.render import demo_deploy as render
from headrace.demo.deployment import VIEWS, Phase, Seen, judged
from headrace.results.refresh_results import VerifyResult


@pytest.mark.parametrize(
    ("tables", "seen"),
    [
        (((9, 2), (9, 2), (9, 2)), Seen.OLD),
        (((7, 0), (7, 0), (7, 0)), Seen.NEW),
        (((9, 2), (7, 0), (9, 2)), Seen.MIXED),
        (((7, 0), (7, 0), (9, 2)), Seen.MIXED),
        (((7, 0), (8, 0), (7, 0)), Seen.MIXED),
        (((None, None), (7, 0), (7, 0)), Seen.MIXED),
    ],
)
def test_a_look_is_old_or_new_only_where_all_tables_agree(
    tables: tuple[tuple[int, int], tuple[int, int], tuple[int, int]], seen: Seen
) -> None:
    assert judged(*tables) is seen


def test_the_closing_table_says_what_the_reader_saw() -> None:
    phases = [Phase("Promote", 2.5, {Seen.OLD: 7}, Seen.NEW), Phase("Take it back", 2.0, {Seen.NEW: 4}, Seen.OLD)]
    text = drawn(render.built([(view, refreshed(view.name)) for view in VIEWS]))
    assert "tpch.sales_totals" in text
    text = drawn(render.totals(phases, {Seen.OLD: 8, Seen.NEW: 4}, [VerifyResult("a", True, 1, 0, 0, 0, 0.1)], 5.0))
    assert "12 looks: 8 saw the old generation whole, 4 the new one; 0 a mixture, 0 a missing table." in text
    assert phases[0].as_dict() == {
        "phase": "Promote",
        "seconds": 2.5,
        "looks": {"old": 7, "new": 0, "mixed": 0, "missing": 0},
        "public": "new",
    }
    assert drawn(render.go_on(Path("demo-deploy"), "headrace")).count("headrace deploy") == 3


def test_one_folder_is_enough() -> None:
    wrong = CliRunner().invoke(app, ["demo", "deploy", "a", "b"])
    assert "One folder is enough." in wrong.output
    assert "demo deploy" in CliRunner().invoke(app, ["demo", "--help"]).output
