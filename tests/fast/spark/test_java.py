import stat

import pytest

from headrace.errors import EnvironmentFault
from headrace.spark.java import find_java, install_hint, parse_version


def fake_java(folder, text):
    binary = folder / "bin"
    binary.mkdir(parents=True)
    java = binary / "java"
    java.write_text(f"#!/bin/sh\necho '{text}' >&2\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    return folder


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_402"', 8),
        ("no java here", None),
    ],
)
def test_the_version_is_read_from_what_java_says(text, version):
    assert parse_version(text) == version


def test_java_home_wins_over_path(tmp_path):
    home = fake_java(tmp_path / "home", 'openjdk version "21.0.1"')
    other = fake_java(tmp_path / "other", 'openjdk version "17.0.1"')
    found = find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert (found.version, found.home) == (21, home)
    assert find_java({"PATH": str(other / "bin")}).version == 17


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('java version "1.8.0_402"', "JAVA_UNSUPPORTED"),
        ('openjdk version "25"', "JAVA_UNSUPPORTED"),
        ("?", "JAVA_MISSING"),
    ],
)
def test_an_unsuitable_java_is_named(tmp_path, text, code):
    home = fake_java(tmp_path, text)
    with pytest.raises(EnvironmentFault, match=code) as caught:
        find_java({"JAVA_HOME": str(home)})
    assert str(home) in str(caught.value)


@pytest.mark.parametrize("environ", [{"PATH": ""}, {"JAVA_HOME": "/nowhere", "PATH": "/usr/bin"}])
def test_no_java_says_how_to_install_one(environ):
    with pytest.raises(EnvironmentFault, match="JAVA_MISSING") as caught:
        find_java(environ)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("system", "manager", "command"),
    [
        ("Linux", "apt-get", "sudo apt-get install -y openjdk-17-jre-headless"),
        ("Linux", "dnf", "sudo dnf install -y java-17-openjdk-headless"),
        ("Darwin", "brew", "brew install openjdk@17"),
        ("Windows", "winget", "winget install EclipseAdoptium.Temurin.17.JRE"),
    ],
)
def test_the_hint_is_the_exact_command(system, manager, command):
    assert command in install_hint(system, {manager: "x"})
    assert "adoptium" in install_hint(system, {})
