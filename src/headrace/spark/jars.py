"""The Java libraries Spark needs beside its own: pinned, verified, fetched once per machine.

They are fetched with Ivy, whose jar comes with PySpark, so that a mirror configured in an ivysettings.xml works as
it does for Spark itself.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headrace.config import Settings
from headrace.errors import EnvironmentFault
from headrace.events import Events, Notice
from headrace.lakes.storage_settings import IMPLEMENTATION, S3_FILE_IO, file_access
from headrace.spark.java import find_java


@dataclass(frozen=True, slots=True)
class Jar:
    """A Maven artifact.

    Args:
        group: Maven group.
        artifact: Maven artifact.
        version: Version.
        sha256: Checksum of the file.
        classifier: Which of the artifact's files; "" for the main one.
    """

    group: str
    artifact: str
    version: str
    sha256: str
    classifier: str = ""

    @property
    def file(self) -> str:
        """Name of the file."""
        return f"{self.artifact}-{self.version}{self.classifier and '-'}{self.classifier}.jar"


JARS = (
    Jar(
        "org.apache.iceberg",
        "iceberg-spark-runtime-4.1_2.13",
        "1.12.0",
        "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
    ),
    Jar(
        "org.postgresql",
        "postgresql",
        "42.7.14",
        "73914527305a40cce504b0d3d90b23caf565136912d607ae8ae7c5895512332c",
    ),
    Jar(
        "org.xerial",
        "sqlite-jdbc",
        "3.54.1.0",
        "f8dce420a6016278497f4f0560f65602b9db858de141b541cf91a4644ebe4639",
    ),
    Jar(
        "com.globalmentor",
        "hadoop-bare-naked-local-fs",
        "0.1.0",
        "e0cc30fb0531eb0b59468dc0abf5b257533d2365b5e9f45e795edd707aa78c62",
    ),
)

S3_JAR = Jar(
    "org.apache.iceberg",
    "iceberg-aws-bundle",
    "1.12.0",
    "dd7e49ffa4ac9b215bed846581991259e3aec9bb2fa08d6cec029c46cd66d957",
)
"""Iceberg's access to S3, of the version of Iceberg's own jar; 69 MB, so only where a warehouse is there."""


def needed(settings: Settings) -> tuple[Jar, ...]:
    """Return the jars that a project's sessions need."""
    in_s3 = file_access(settings.warehouse, settings.storage).get(IMPLEMENTATION) == S3_FILE_IO
    return (*JARS, S3_JAR) if in_s3 else JARS


def missing(folder: Path, jars: tuple[Jar, ...] | None = None) -> tuple[Jar, ...]:
    """Return the jars that `folder` does not hold yet: of some, or of Spark's when None."""
    return tuple(jar for jar in (JARS if jars is None else jars) if not (folder / jar.file).is_file())


def ensure(settings: Settings, events: Events | None = None, jars: tuple[Jar, ...] | None = None) -> tuple[Path, ...]:
    """Make sure the jars are there, fetching what is missing.

    Several processes may call this at once; one fetches, the others wait. A file is verified before it gets its
    final name, so a present file is a whole one.

    Raises:
        EnvironmentFault: `JARS_UNAVAILABLE` (retryable), `JAR_CORRUPT`, `JAVA_MISSING`, `JAVA_UNSUPPORTED`.
    """
    folder, jars = settings.jars, needed(settings) if jars is None else jars
    if missing(folder, jars):
        with locked(folder):
            for jar in missing(folder, jars):
                if events is not None:
                    events.emit(Notice(f"Fetching {jar.file} into {folder} (once per machine)"))
                _fetch(jar, folder, settings)
    return tuple(folder / jar.file for jar in jars)


def verify(settings: Settings) -> None:
    """Check the checksum of every jar of a project's sessions that is there.

    Raises:
        EnvironmentFault: `JAR_CORRUPT` for a file that is not what was pinned.
    """
    for jar in needed(settings):
        if (file := settings.jars / jar.file).is_file():
            _check(jar, file, file)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder for this process alone.

    Raises:
        EnvironmentFault: `JARS_UNAVAILABLE` when the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = (folder / ".lock").open("w")
    except OSError as error:
        raise EnvironmentFault(
            "JARS_UNAVAILABLE",
            f"The folder for Spark's jars, {folder}, cannot be written.",
            detail=str(error),
            hint="Set jars_dir in headrace.toml (or HEADRACE_JARS_DIR) to a folder that can.",
        ) from error
    with handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _fetch(jar: Jar, folder: Path, settings: Settings) -> None:
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as scratch:
        output = _run_ivy(jar, Path(scratch), settings)
        fetched = Path(scratch) / "out" / jar.file
        if not fetched.is_file():
            raise _unavailable(jar, folder, _reason(output))
        _check(jar, fetched, folder / jar.file)
        os.replace(fetched, folder / jar.file)


def _run_ivy(jar: Jar, scratch: Path, settings: Settings) -> str:
    command = [
        str(find_java().executable),
        f"-Divy.default.ivy.user.dir={scratch}",
        "-cp",
        str(_ivy_jar()),
        "org.apache.ivy.Main",
        *(("-settings", settings.ivy_settings) if settings.ivy_settings else ()),
        *("-cache", str(scratch / "cache")),
        *(
            ("-ivy", str(_description(jar, scratch)))
            if jar.classifier
            else ("-dependency", jar.group, jar.artifact, jar.version)
        ),
        *("-confs", "default", "-notransitive", "-warn"),
        *(
            "-retrieve",
            str(scratch / "out" / f"[artifact]-[revision]{'-' * bool(jar.classifier)}{jar.classifier}.[ext]"),
        ),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stdout + done.stderr


def _description(jar: Jar, scratch: Path) -> Path:
    """Write what Ivy is to fetch: one file of one artifact that has several."""
    file = scratch / "ivy.xml"
    file.write_text(
        f"""<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="headrace" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="{jar.group}" name="{jar.artifact}" rev="{jar.version}" transitive="false" conf="default->*">
      <artifact name="{jar.artifact}" type="jar" ext="jar" m:classifier="{jar.classifier}"/>
    </dependency>
  </dependencies>
</ivy-module>
""",
        encoding="utf-8",
    )
    return file


def _ivy_jar() -> Path:
    import pyspark

    found = sorted((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    if not found:
        raise EnvironmentFault(
            "JARS_UNAVAILABLE",
            "This PySpark comes without Spark's own jars.",
            hint="Install the package pyspark (not pyspark-client), or set spark_remote.",
        )
    return found[-1]


def _check(jar: Jar, file: Path, final: Path) -> None:
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if digest != jar.sha256:
        raise EnvironmentFault(
            "JAR_CORRUPT",
            f"{jar.file} is not the file that was expected.",
            detail=f"sha256 is {digest}, expected {jar.sha256}.",
            hint=f"Delete {final} if it exists and try again; if it stays so, the repository or proxy alters files.",
        )


def _reason(output: str) -> str | None:
    lines = (line.strip(" :\t") for line in output.splitlines())
    telling = [
        s for s in lines if any(w in s for w in ("Exception", "not found", "UNRESOLVED", "Server access", "rror"))
    ]
    return "; ".join(dict.fromkeys(telling[:3])) or None


def _unavailable(jar: Jar, folder: Path, detail: str | None) -> EnvironmentFault:
    path = f"{jar.group.replace('.', '/')}/{jar.artifact}/{jar.version}/{jar.file}"
    return EnvironmentFault(
        "JARS_UNAVAILABLE",
        f"{jar.file} could not be fetched.",
        detail=detail,
        hint=(
            f"Check the network, or set ivy_settings in headrace.toml to reach a mirror. Offline: copy {path} of a "
            f"Maven repository to {folder}."
        ),
        retryable=True,
    )
