"""What a JVM says when it is started: a stand-in for Java that says something and ends."""

from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError

from headrace.spark.starting.jvm_output import launch_jvm, telling_by

SAYS = """#!/bin/sh
echo "WARNING: Using incubator modules: jdk.incubator.vector" >&2
echo "1 compiler directives added"
echo "said on the other output"
echo "Error: Could not create the Java Virtual Machine." >&2
exit 1
"""


@pytest.fixture(autouse=True)
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(SAYS)
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(SparkContext, "_gateway", None)


def test_what_matters_is_passed_on_and_what_is_useless_is_not(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(PySparkRuntimeError):
        launch_jvm({"spark.app.name": "headrace"})
    output, said = capfd.readouterr()
    assert "Error: Could not create the Java Virtual Machine.\n" in said
    assert "incubator" not in said
    assert "directives" not in said
    assert "said on the other output\n" in said
    assert output == ""


def test_a_display_shows_it_in_its_own_way(capfd: pytest.CaptureFixture[str]) -> None:
    told: list[str] = []
    with telling_by(told.append), pytest.raises(PySparkRuntimeError):
        launch_jvm({})
    assert "Error: Could not create the Java Virtual Machine." in told
    assert capfd.readouterr().err == ""
