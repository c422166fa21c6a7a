"""Finds a Java that Spark 4.1 runs on."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from headrace.errors import EnvironmentFault

SUPPORTED = (17, 21)
"""Versions that Spark 4.1 runs on."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime.

    Args:
        executable: Its `java` program.
        version: Its feature version, such as 17.
    """

    executable: Path
    version: int

    @property
    def home(self) -> Path:
        """Return the folder to use as JAVA_HOME."""
        return self.executable.resolve().parent.parent


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """Find Java as Spark will: JAVA_HOME first, then PATH.

    A JAVA_HOME that has no `java` or an unsuitable one is an error, even if PATH has a good one, because Spark would
    use JAVA_HOME.

    Raises:
        EnvironmentFault: `JAVA_MISSING`, `JAVA_UNSUPPORTED`.
    """
    environ = os.environ if environ is None else environ
    home = environ.get("JAVA_HOME")
    if home:
        executable = Path(home) / "bin" / "java"
        if not os.access(executable, os.X_OK):
            raise _missing(f"JAVA_HOME is {home}, but there is no {executable}.")
    else:
        found = shutil.which("java", path=environ.get("PATH", ""))
        if found is None:
            raise _missing("Neither JAVA_HOME nor PATH leads to a java program.")
        executable = Path(found)
    version = _version(executable)
    if version not in SUPPORTED:
        raise EnvironmentFault(
            "JAVA_UNSUPPORTED",
            f"Java at {executable} has version {version}; Spark 4.1 needs 17 or 21.",
            hint=install_hint(),
        )
    return Java(executable, version)


def parse_version(text: str) -> int | None:
    """Return the feature version in the output of `java -version`; None when there is none."""
    match = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if match is None:
        return None
    major = int(match[1])
    return int(match[2]) if major == 1 and match[2] else major


def install_hint(system: str | None = None, which: Mapping[str, str] | None = None) -> str:
    """Return the exact command that installs Java 17 here.

    Args:
        system: `Linux`, `Darwin` or `Windows`; this machine's when None.
        which: Package managers present, name to path; looked up when None.
    """
    system = system or platform.system()
    for manager, command in _COMMANDS.get(system, ()):
        present = manager in which if which is not None else shutil.which(manager) is not None
        if present:
            return f"Install it with: {command}"
    return "Install OpenJDK 17 or 21 (https://adoptium.net) and set JAVA_HOME to its folder."


_COMMANDS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "Linux": (
        ("apt-get", "sudo apt-get install -y openjdk-17-jre-headless"),
        ("dnf", "sudo dnf install -y java-17-openjdk-headless"),
        ("yum", "sudo yum install -y java-17-openjdk-headless"),
        ("zypper", "sudo zypper install -y java-17-openjdk-headless"),
        ("apk", "sudo apk add openjdk17-jre-headless"),
        ("pacman", "sudo pacman -S --noconfirm jre17-openjdk-headless"),
    ),
    "Darwin": (("brew", "brew install openjdk@17 && export JAVA_HOME=$(brew --prefix openjdk@17)"),),
    "Windows": (("winget", "winget install EclipseAdoptium.Temurin.17.JRE"),),
}


def _missing(detail: str) -> EnvironmentFault:
    return EnvironmentFault("JAVA_MISSING", "Spark needs Java, and none was found.", detail=detail, hint=install_hint())


@cache
def _version(executable: Path) -> int:
    try:
        done = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _missing(f"{executable} does not run: {error}") from error
    version = parse_version(done.stderr + done.stdout)
    if version is None:
        raise _missing(f"{executable} -version answered nothing that names a version.")
    return version
