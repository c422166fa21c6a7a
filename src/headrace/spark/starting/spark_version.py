"""Refuses a Spark of another release: jars, plans and functions are those of one."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from headrace.errors import EnvironmentFault

RELEASE = "4.1"
"""As in pyproject.toml, which nothing enforces where a cluster or a path brings its own."""


def is_supported(version: str) -> bool:
    """Return whether a version is one of the release."""
    return version.startswith(f"{RELEASE}.")


def refuse_other_release(version: str, what: str) -> None:
    """Refuse a version of another release.

    Args:
        version: Such as `4.1.4`.
        what: Which program has it, as the message begins.

    Raises:
        EnvironmentFault: `SPARK_WRONG_RELEASE`.
    """
    if not is_supported(version):
        raise EnvironmentFault(
            "SPARK_WRONG_RELEASE",
            f"{what} is of version {version}; Headrace needs Spark {RELEASE}.",
            hint=f"Install PySpark {RELEASE} for it, or let it use a Spark {RELEASE} that is there.",
        )


def pyspark_found() -> str:
    """Return the package that PySpark came with, and its version."""
    from importlib.metadata import PackageNotFoundError, version

    import pyspark

    for name in ("pyspark", "pyspark-client", "pyspark-connect"):
        with suppress(PackageNotFoundError):
            if version(name) == pyspark.__version__:
                return f"{name} {pyspark.__version__}"
    return f"in {Path(pyspark.__file__).parent}: {pyspark.__version__}"
