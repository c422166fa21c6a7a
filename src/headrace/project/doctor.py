"""Checks Headrace's environment: each check has a finding and a remedy."""

from __future__ import annotations

import datetime as dt
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace import config
from headrace.errors import HeadraceError
from headrace.extras import CONNECT_CLIENT, CONNECT_PACKAGES, absent, extra_of, install
from headrace.lakes.storage_settings import warehouses

if TYPE_CHECKING:
    from headrace.catalog import Catalog

OLDEST_PYTHON = (3, 11)
"""As in pyproject.toml, which nothing enforces for a checkout on the path."""
ROOMY = 5 * 2**30
"""Free bytes below which a warehouse deserves a warning."""
CRAMPED = 200 * 2**20
"""Free bytes below which the next refresh may fail."""
CLOCK_WARNS = 1.0
CLOCK_FAILS = 10.0
"""Seconds between this machine's clock and the catalog database's; leases and schedules compare the two."""
BORN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
"""No machine's clock can rightly be before this."""


class Outcome(StrEnum):
    """The outcome of a check."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """One check.

    Args:
        name: What was looked at.
        outcome: How it ended.
        finding: What was found, one sentence.
        remedy: What to do about it, or None.
    """

    name: str
    outcome: Outcome
    finding: str
    remedy: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"name": self.name, "outcome": self.outcome.value, "finding": self.finding, "remedy": self.remedy}


def examine(root: Path | str | None, *, spark: bool = False) -> tuple[Check, ...]:
    """Examine a project and its surroundings; changes nothing.

    Args:
        root: The project folder; None outside of a project, where only what every project needs is looked at.
        spark: Whether to start a Spark session too.
    """
    if root is None:
        finding = "not in a project: catalog, warehouse and settings were not looked at"
        nowhere = Check("Project", Outcome.WARN, finding, "Run it in a project, or name one with --project.")
        return (check_python(), check_packages(), *_examine_machine(), nowhere)
    try:
        settings = config.load(root)
    except HeadraceError as error:
        return (check_python(), check_packages(), _failed("Settings", error), *_examine_machine())
    found = [check_python(), check_packages(bool(settings.spark_remote))]
    found.append(Check("Settings", Outcome.OK, f"{settings.root / config.FILE_NAME}"))
    for name, check in CHECKS:
        try:
            found.append(check(settings))
        except HeadraceError as error:
            found.append(_failed(name, error))
    if spark:
        found.append(_checked_spark(settings))
    return tuple(found)


def _examine_machine() -> Iterator[Check]:
    """Look at what every project needs, with the settings that a new one has."""
    with tempfile.TemporaryDirectory(prefix="headrace-") as folder:
        settings = config.default_settings(Path(folder))
        for name, check in (("Java", check_java), ("Jars", check_jars)):
            try:
                yield check(settings)
            except HeadraceError as error:
                yield _failed(name, error)


def _failed(name: str, error: HeadraceError) -> Check:
    finding = f"{error.message} {error.detail}" if error.detail else error.message
    return Check(name, Outcome.FAIL, f"{finding} [{error.code}]", error.hint)


def check_python(version: tuple[int, ...] = sys.version_info[:3]) -> Check:
    """Check that Python is new enough."""
    text = ".".join(map(str, version))
    if version < OLDEST_PYTHON:
        return Check("Python", Outcome.FAIL, f"Python {text}", "Use Python 3.11 or newer.")
    return Check("Python", Outcome.OK, f"Python {text} at {sys.executable} on {platform.system()}")


def check_packages(remote: bool = False) -> Check:
    """Look for what Spark needs in Python, which a cluster may bring itself.

    Args:
        remote: Whether Spark is a Connect server (`spark_remote`).
    """
    from headrace.spark.starting.spark_version import RELEASE, is_supported, pyspark_found

    lacking = absent("pyspark", *(CONNECT_PACKAGES if remote else ("py4j",)))
    client = CONNECT_CLIENT if remote and "pyspark" in lacking else ""
    remedy = install(extra_of("connect" if remote else "local"), client)
    if "pyspark" in lacking:
        return Check("PySpark", Outcome.FAIL, "PySpark is not installed.", remedy)
    if lacking:
        purpose = "Spark Connect" if remote else "a Spark of its own"
        finding = f"There is PySpark, without what {purpose} needs beside it: {', '.join(lacking)}."
        return Check("PySpark", Outcome.FAIL, finding, remedy)
    try:
        found = pyspark_found()
    except ImportError as error:
        return Check("PySpark", Outcome.FAIL, f"PySpark cannot be imported: {error}.", remedy)
    if not is_supported(found.rpartition(" ")[2]):
        return Check("PySpark", Outcome.FAIL, f"{found}; Headrace needs {RELEASE}.", remedy)
    return Check("PySpark", Outcome.OK, found)


def check_spark_options(settings: config.Settings) -> Check:
    """Look for Spark options that cannot mean what is written, or that Headrace sets itself."""
    from headrace.project.spark_options import complaints

    if found := complaints(settings.spark_options):
        option, what, remedy = found[0]
        return Check("Spark options", Outcome.WARN, f"{option} {what}", remedy)
    return Check("Spark options", Outcome.OK, f"{len(settings.spark_options)} in [spark]")


def check_java(settings: config.Settings) -> Check:
    """Spark finds a Java it runs on."""
    if settings.spark_remote:
        return Check("Java", Outcome.OK, "not needed: Spark runs elsewhere (spark_remote)")
    from headrace.spark.java import find_java

    java = find_java()
    return Check("Java", Outcome.OK, f"Java {java.version} at {java.home}")


def check_jars(settings: config.Settings) -> Check:
    """Check that the jars are there and are those that were pinned."""
    if settings.spark_remote:
        return Check("Jars", Outcome.OK, "not needed: Spark runs elsewhere (spark_remote)")
    from headrace.spark import jars

    if absent := jars.missing(settings.jars, jars.needed(settings)):
        names = ", ".join(jar.file for jar in absent)
        remedy = "They are fetched when Spark first starts; `headrace doctor --spark` does it now."
        return Check("Jars", Outcome.WARN, f"{settings.jars} lacks {names}", remedy)
    jars.verify(settings)
    return Check("Jars", Outcome.OK, f"{len(jars.needed(settings))} in {settings.jars}, checksums right")


def check_catalog(settings: config.Settings) -> Check:
    """Check that the catalog answers and has this version's revision."""
    from headrace.catalog import Catalog
    from headrace.catalog.inspection import revision_of
    from headrace.catalog.schema import REVISIONS
    from headrace.project.moved_project import refuse_moved

    shown, revision = revision_of(settings.catalog_url)
    if revision is None:
        return Check("Catalog", Outcome.FAIL, f"{shown} holds no catalog.", "Run `headrace init` for a new project.")
    if revision == REVISIONS[-1]:
        with Catalog.open(settings.catalog_url, create=False) as catalog:
            refuse_moved(settings, catalog)
            catalog.refuse_copy()
        return Check("Catalog", Outcome.OK, f"{shown}, revision {revision}")
    if revision in REVISIONS:
        remedy = "It is migrated, after a backup, when the project is next opened."
        return Check("Catalog", Outcome.WARN, f"{shown} has the older revision {revision}.", remedy)
    return Check("Catalog", Outcome.FAIL, f"{shown} has the unknown revision {revision}.", "Upgrade Headrace.")


def check_lake(settings: config.Settings) -> Check:
    """Check that the REST catalog answers and lets us in; say what it can do."""
    elsewhere = _other_lake(settings)
    if settings.lake is None:
        return _failed("Lake", elsewhere) if elsewhere else Check("Lake", Outcome.OK, "in the catalog's own database")
    from headrace.lake.rest.open_lake import open_lake

    try:
        finding, whole = open_lake(settings.lake).described()
    except HeadraceError as error:
        if elsewhere is None:
            raise
        finding, whole = error.message, False
    if elsewhere is not None:
        return Check("Lake", Outcome.FAIL, f"{elsewhere.message} [{elsewhere.code}] {finding}", elsewhere.hint)
    if whole:
        return Check("Lake", Outcome.OK, finding)
    remedy = "A stream table, its companion and its log are published one by one; groups of stream tables are refused."
    return Check("Lake", Outcome.WARN, finding, remedy)


@contextmanager
def _current_catalog(settings: config.Settings) -> Iterator[Catalog | None]:
    """Open the catalog; None where it has not this version's revision."""
    from headrace.catalog import Catalog
    from headrace.catalog.inspection import revision_of
    from headrace.catalog.schema import REVISIONS

    if revision_of(settings.catalog_url)[1] != REVISIONS[-1]:
        yield None
        return
    with Catalog.open(settings.catalog_url, create=False) as catalog:
        yield catalog


def _other_lake(settings: config.Settings) -> HeadraceError | None:
    """Return the error of settings that name another lake than the project's own."""
    try:
        with _current_catalog(settings) as catalog:
            if catalog is not None:
                catalog.refuse_other_lake(None if settings.lake is None else settings.lake.identity)
    except HeadraceError as error:
        return error if error.code == "LAKE_CHANGED" else None  # all else is found by the check of the catalog
    return None


def check_warehouse(settings: config.Settings) -> Check:
    """Check that the warehouse can be written and has room."""
    if "://" in settings.warehouse:
        return _checked_store(settings)
    from headrace.spark.session_kind import is_local

    folder = Path(settings.warehouse.removeprefix("file:"))
    if (missing := not os.path.exists(folder)) and (tables := _tables_in(settings, folder)):
        remedy = "Mount the disk that has it, or bring the folder back; a new one would not have the tables."
        finding = f"{folder} is not there, and the catalog has {tables} table{'s' * (tables > 1)} in it"
        return Check("Warehouse", Outcome.FAIL, finding, remedy)
    written = next(place for place in (folder, *folder.parents) if os.path.exists(place))
    try:
        with tempfile.TemporaryFile(dir=written) as file:
            file.write(b"headrace")
        free = shutil.disk_usage(written).free
    except OSError as error:
        remedy = f"Let {os.environ.get('USER') or 'this user'} write there, or set warehouse in headrace.toml."
        return Check("Warehouse", Outcome.FAIL, f"{folder} cannot be written: {error.strerror}", remedy)
    finding = f"{folder}{', not there yet' if missing else ''}, {free / 2**30:.1f} GiB free"
    if not settings.spark_remote and not is_local(settings.spark_master):
        finding += "; executors must see it under the same path"
    if free >= ROOMY:
        return Check("Warehouse", Outcome.OK, finding)
    outcome = Outcome.FAIL if free < CRAMPED else Outcome.WARN
    return Check("Warehouse", outcome, finding, "Make room on that disk, or set warehouse in headrace.toml.")


def _tables_in(settings: config.Settings, folder: Path) -> int:
    """Return how many tables the catalog has in a local folder; 0 where it does not say."""
    inside = tuple(f"{prefix}{folder}/" for prefix in ("", "file:", "file://"))
    try:
        with _current_catalog(settings) as catalog:
            pointers = {} if catalog is None else catalog.pointers()
            return sum(pointer.metadata_location.startswith(inside) for pointer in pointers.values())
    except HeadraceError:
        return 0  # it is found by the check of the catalog


def _checked_store(settings: config.Settings) -> Check:
    """Try to write to an object store from this process, as Spark will from its own."""
    from headrace.lake.files.file_access import reach_by, writing_fails
    from headrace.lakes.store_errors import store_fault

    for warehouse, properties in warehouses(settings.warehouse, settings.storage, settings.spark_options).items():
        reach_by(warehouse, properties)
    if (why := writing_fails(settings.warehouse)) is None:
        return Check("Warehouse", Outcome.OK, f"{settings.warehouse} can be written")
    if (fault := store_fault(why)) is not None:
        return Check("Warehouse", Outcome.FAIL, f"{settings.warehouse} cannot be written: {fault.message}", fault.hint)
    remedy = "Check warehouse, and the endpoint and credentials in [storage] of headrace.toml."
    return Check("Warehouse", Outcome.FAIL, f"{settings.warehouse} cannot be written: {why}", remedy)


def check_clocks(settings: config.Settings) -> Check:
    """Check that this machine's clock is plausible and agrees with the catalog database's."""
    wall, steady = time.time(), time.monotonic()
    if dt.datetime.fromtimestamp(wall, dt.UTC) < BORN:
        finding = f"This machine believes it is {dt.datetime.fromtimestamp(wall, dt.UTC):%Y-%m-%d}."
        return Check("Clocks", Outcome.FAIL, finding, "Set the clock, or switch time synchronisation (NTP) on.")
    if settings.catalog_url.startswith("sqlite"):
        return judge_clocks((time.time() - wall) - (time.monotonic() - steady), "steady")
    from headrace.catalog.inspection import clock_difference

    return judge_clocks(clock_difference(settings.catalog_url), "against the catalog database's")


def judge_clocks(difference: float, against: str) -> Check:
    """Judge a difference between two clocks, in seconds."""
    finding = f"this machine's clock is {difference:+.3f} s {against}"
    size = abs(difference)
    if size < CLOCK_WARNS:
        return Check(
            "Clocks", Outcome.OK, finding if "database" in against else "this machine's clock is plausible and steady"
        )
    outcome = Outcome.FAIL if size >= CLOCK_FAILS else Outcome.WARN
    return Check("Clocks", outcome, finding, "Switch time synchronisation (NTP) on, on both machines.")


def check_functions(settings: config.Settings) -> Check:
    """Check that the project's Python functions can be loaded."""
    from headrace.functions import FILE_NAME, Functions

    functions = Functions(settings.root / FILE_NAME)
    names = ", ".join(functions.now())
    if not functions.file.exists():
        return Check("Functions", Outcome.OK, f"none: there is no {FILE_NAME}")
    return Check("Functions", Outcome.OK, f"{functions.file} declares {names or 'none'}")


def _checked_spark(settings: config.Settings) -> Check:
    from headrace.api.facade import Headrace
    from headrace.spark.errors import translated
    from headrace.spark.session_kind import kind_of

    began = time.monotonic()
    try:
        with Headrace(settings, create=False) as hr, translated():
            hr.sql("SELECT 1").collect()
            version, kind = hr.spark.version, kind_of(hr.spark)
    except HeadraceError as error:
        return _failed("Spark", error)
    seconds = time.monotonic() - began
    return Check("Spark", Outcome.OK, f"Spark {version} on {kind} answered after {seconds:.1f} s; {kind.keeps}")


CHECKS: tuple[tuple[str, Callable[[config.Settings], Check]], ...] = (
    ("Java", check_java),
    ("Jars", check_jars),
    ("Spark options", check_spark_options),
    ("Catalog", check_catalog),
    ("Lake", check_lake),
    ("Warehouse", check_warehouse),
    ("Clocks", check_clocks),
    ("Functions", check_functions),
)
"""Checks that `examine` makes after Python and the settings, in this order."""
