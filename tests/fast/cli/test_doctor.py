"""The doctor: each finding from a state that really is so."""

import json
from pathlib import Path

import pytest
import sqlalchemy as sa
from catalog_kit.databases import Postgres
from fast.cli.conftest import Run

from headrace import config
from headrace.catalog import schema as t
from headrace.errors import EnvironmentFault
from headrace.project import doctor
from headrace.project.doctor import Check, Outcome, examine
from headrace.project.new_project import init_project
from headrace.spark.jars import JARS
from headrace.spark.session import open_session


def by_name(found: tuple[Check, ...]) -> dict[str, Check]:
    return {check.name: check for check in found}


def test_a_new_project_is_well_but_for_jars(project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEADRACE_JARS_DIR", str(tmp_path / "nowhere"))
    found = by_name(examine(project))
    names = "Python PySpark Settings Java Jars Catalog Lake Warehouse Clocks Functions"
    assert {name for name in found if name != "Spark options"} == set(names.split())
    assert found.pop("Jars") == Check(
        "Jars",
        Outcome.WARN,
        f"{tmp_path / 'nowhere'} lacks {', '.join(jar.file for jar in JARS)}",
        "They are fetched when Spark first starts; `headrace doctor --spark` does it now.",
    )
    found.pop("Java")  # the machine's own
    assert {check.outcome for check in found.values()} <= {Outcome.OK, Outcome.WARN}
    assert found["Catalog"].outcome is Outcome.OK


def test_no_java(project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    check = by_name(examine(project))["Java"]
    assert check.outcome is Outcome.FAIL
    assert "[JAVA_MISSING]" in check.finding
    assert check.remedy


def test_a_wrong_java(project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    check = by_name(examine(project))["Java"]
    assert check.outcome is Outcome.FAIL
    assert "version 8; Spark 4.1 needs 17 or 21" in check.finding


def test_a_jar_that_was_altered(project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for jar in JARS:
        (tmp_path / jar.file).write_text("no jar")
    monkeypatch.setenv("HEADRACE_JARS_DIR", str(tmp_path))
    check = by_name(examine(project))["Jars"]
    assert check.outcome is Outcome.FAIL
    assert "[JAR_CORRUPT]" in check.finding


def test_spark_elsewhere_needs_neither_java_nor_jars(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_SPARK_REMOTE", "sc://host:15002")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    found = by_name(examine(project))
    assert found["Java"].outcome is found["Jars"].outcome is Outcome.OK


@pytest.mark.parametrize(
    ("version", "outcome"),
    [("4.1.0", Outcome.OK), ("4.0.1", Outcome.FAIL), ("4.10.0", Outcome.FAIL), ("3.5.7", Outcome.FAIL)],
)
def test_a_spark_of_another_release(
    project: Path, monkeypatch: pytest.MonkeyPatch, version: str, outcome: Outcome
) -> None:
    monkeypatch.setattr("pyspark.__version__", version)
    check = by_name(examine(project))["PySpark"]
    assert (check.outcome, version in check.finding) == (outcome, True)
    if outcome is Outcome.FAIL:
        assert check.remedy == "pip install 'headrace[local]'"
        monkeypatch.setenv("JAVA_HOME", "/nowhere")
        with pytest.raises(EnvironmentFault, match=f"{version}; Headrace needs Spark 4.1") as raised:
            open_session(config.load(project))
        assert raised.value.code == "SPARK_WRONG_RELEASE"


def test_a_missing_catalog_is_not_made(project: Path) -> None:
    (project / "headrace.db").unlink()
    check = by_name(examine(project))["Catalog"]
    assert check.outcome is Outcome.FAIL
    assert "holds no catalog" in check.finding
    assert not (project / "headrace.db").exists()


def test_a_warehouse_that_is_a_file(project: Path) -> None:
    (project / "warehouse").rmdir()
    (project / "warehouse").write_text("")
    assert by_name(examine(project))["Warehouse"].outcome is Outcome.FAIL


def test_a_warehouse_that_is_not_there_is_not_made(project: Path) -> None:
    (project / "warehouse").rmdir()
    check = doctor.check_warehouse(config.load(project))
    assert (check.outcome, "not there yet" in check.finding) == (Outcome.OK, True)
    assert not (project / "warehouse").exists()


def test_a_warehouse_that_is_gone_and_has_tables_is_a_failure(project: Path, tmp_path: Path) -> None:
    """As a mount that is not there."""
    (project / "warehouse").rmdir()
    engine = sa.create_engine(f"sqlite:///{project / 'headrace.db'}")
    row = {"catalog_name": "lake", "table_namespace": "shop", "table_name": "orders", "iceberg_type": "TABLE"}
    location = f"file://{project / 'warehouse/shop/orders/metadata/0.metadata.json'}"
    with engine.begin() as connection:
        connection.execute(sa.insert(t.iceberg_tables).values(**row, metadata_location=location))
    engine.dispose()
    check = doctor.check_warehouse(config.load(project))
    assert (check.outcome, "1 table" in check.finding) == (Outcome.FAIL, True)
    assert check.remedy is not None
    assert not (project / "warehouse").exists()


def test_a_full_disk(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = config.load(project)
    monkeypatch.setattr(doctor, "ROOMY", 2**80)
    assert doctor.check_warehouse(settings).outcome is Outcome.WARN
    monkeypatch.setattr(doctor, "CRAMPED", 2**80)
    assert doctor.check_warehouse(settings).outcome is Outcome.FAIL


@pytest.mark.parametrize(
    ("difference", "outcome"),
    [(0.0, Outcome.OK), (-0.9, Outcome.OK), (1.5, Outcome.WARN), (-30.0, Outcome.FAIL)],
)
def test_clocks_are_judged_by_their_difference(difference: float, outcome: Outcome) -> None:
    check = doctor.judge_clocks(difference, "against the catalog database's")
    assert check.outcome is outcome
    assert bool(check.remedy) is (outcome is not Outcome.OK)


def test_the_clock_of_a_real_postgresql(tmp_path: Path, postgres: Postgres) -> None:
    settings = init_project(tmp_path / "p", catalog_url=postgres.fresh())
    found = by_name(examine(settings.root))
    assert found["Catalog"].outcome is Outcome.OK
    assert found["Clocks"].outcome is Outcome.OK
    assert "against the catalog database's" in found["Clocks"].finding


def test_an_unreachable_postgresql(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_CATALOG_URL", "postgresql://nobody:secret@127.0.0.1:1/none")
    found = by_name(examine(project))
    assert found["Catalog"].outcome is found["Clocks"].outcome is Outcome.FAIL
    assert "secret" not in found["Catalog"].finding


def test_an_old_python() -> None:
    assert doctor.check_python((3, 10, 1)).outcome is Outcome.FAIL


def test_broken_settings_leave_the_machine_to_be_examined(project: Path) -> None:
    (project / "headrace.toml").write_text("[")
    found = by_name(examine(project))
    assert list(found) == ["Python", "PySpark", "Settings", "Java", "Jars"]
    assert found["Settings"].outcome is Outcome.FAIL


def test_the_verb_fails_when_a_check_does(run: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    result = run("doctor", "-p", project)
    assert result.exit_code == 1
    assert "→" in result.stdout
    checks = json.loads(run("doctor", "-p", project, "--json").stdout)
    assert {check["name"]: check["outcome"] for check in checks}["Java"] == "fail"
