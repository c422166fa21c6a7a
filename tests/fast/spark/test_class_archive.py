"""Archives of classes: Java uses one only with the class path that it was made with, so each has its own."""

import os
from dataclasses import replace

import pytest

from headrace.config import default_settings
from headrace.lakes.lake_settings import LakeSettings
from headrace.spark.class_archive import archive, class_path, java_options
from headrace.spark.jars import needed
from headrace.spark.session import session_options


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """A project, and a Java that says its version and nothing else."""
    java = tmp_path / "java_home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(java.parent.parent))
    (tmp_path / "jars").mkdir()
    return replace(default_settings(tmp_path / "shop"), jars_dir=str(tmp_path / "jars"))


def in_s3(settings):
    return replace(settings, warehouse="s3://lake/shop")


def with_jar(settings):
    return replace(settings, spark_options={"spark.driver.extraClassPath": "/mine/c.jar"})


@pytest.mark.parametrize("other", [in_s3, with_jar])
def test_another_class_path_has_another_archive(settings, other):
    archive(settings).touch()
    assert f"-XX:SharedArchiveFile={archive(settings)}" in java_options(settings)
    assert archive(other(settings)) != archive(settings)
    assert java_options(other(settings)) == (), "Java would ignore the one that there is"
    archive(other(settings)).touch()
    assert f"-XX:SharedArchiveFile={archive(other(settings))}" in java_options(other(settings))


def test_projects_with_one_class_path_share_an_archive(settings, tmp_path):
    rest = replace(settings, root=tmp_path / "rest", lake=LakeSettings(uri="http://127.0.0.1:8181"))
    assert archive(rest) == archive(settings)


@pytest.mark.parametrize("project", [lambda settings: settings, in_s3, with_jar])
def test_it_is_made_with_the_class_path_that_sessions_have(settings, project):
    wanted = project(settings)
    jars = tuple(wanted.jars / jar.file for jar in needed(wanted))
    assert session_options(wanted, jars)["spark.driver.extraClassPath"] == class_path(wanted)
    usual = tuple(settings.jars / jar.file for jar in needed(settings))
    made = replace(settings, spark_options={"spark.driver.extraClassPath": class_path(wanted)})
    assert session_options(made, usual)["spark.driver.extraClassPath"] == class_path(wanted)
    assert class_path(wanted).split(os.pathsep)[-len(jars) :] == [str(jar) for jar in jars]
