"""Makes a project: a folder with settings, a catalog and a warehouse."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from headrace import config
from headrace.config.home_folders import expanded
from headrace.errors import EnvironmentFault, UserError

TEMPLATE = """\
# A Headrace project. Its own settings can also come from the environment (HEADRACE_WAREHOUSE, ...),
# Spark's options from HEADRACE_SPARK_OPTIONS="spark.driver.memory=4g spark.eventLog.enabled=true".
[headrace]
catalog_url = {catalog_url}
warehouse = {warehouse}
# spark_master = "local[*]"              # or spark://host:7077, yarn, k8s://...
# spark_remote = "sc://host:15002"       # Spark Connect, instead of a master
# ivy_settings = "/path/ivysettings.xml" # to fetch Spark's jars from a mirror
# jars_dir = "/path/jars"                # where the jars are; a folder in your cache otherwise
# format_version = 3                     # Iceberg format of new tables; 2 for older readers
# max_concurrent_refreshes = 4           # in headrace run, and in each headrace refresh
# default_schedule = "1 minute"          # of stream tables without one that nothing reads
# allow_cycles = true                    # stream tables may read each other in a circle

# [sources.shop]                         # PostgreSQL, for headrace source apply
# url_env = "SHOP_URL"                   # or url = "postgresql://user@host/database", without a password
# tables = ["public.orders", "public.customers COLUMNS (id, country)"]

[spark]
# "spark.driver.memory" = "4g"           # any Spark option, by its full name
"""

GITIGNORE = """\
/headrace.db*
/warehouse/
/.headrace/
/.spark-warehouse/
"""


def init_project(path: str | Path, catalog_url: str | None = None, warehouse: str | None = None) -> config.Settings:
    """Create a project in a folder; of an existing project, a missing catalog.

    Args:
        path: The folder.
        catalog_url: Catalog database as a SQLAlchemy URL; a SQLite file in the folder when None.
        warehouse: Where tables are written, a folder or an object-store URL; a folder in the project when None.

    Raises:
        UserError: `PROJECT_EXISTS`, `CONFIG_INVALID`.
        EnvironmentFault: `FOLDER_NOT_WRITABLE`, or why the catalog cannot be made.
    """
    root = expanded(path)
    file = root / config.FILE_NAME
    if file.exists():
        return _complete(root, given=catalog_url is not None or warehouse is not None)
    text = TEMPLATE.format(
        catalog_url=json.dumps(catalog_url or "sqlite:///headrace.db"), warehouse=json.dumps(warehouse or "warehouse")
    )
    try:
        root.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _not_writable(root, error) from error
    try:
        settings = config.load(root)
        _make_parts(settings)
    except BaseException:
        file.unlink(missing_ok=True)  # a folder that is half a project could be neither used nor made again
        raise
    return settings


def _complete(root: Path, *, given: bool) -> config.Settings:
    """Make what a project lacks: its settings may have come to name another database since."""
    from headrace.catalog.inspection import revision_of

    settings = config.load(root)
    if given or revision_of(settings.catalog_url)[1] is not None:
        raise UserError(
            "PROJECT_EXISTS",
            f"{root.resolve()} is a Headrace project already.",
            hint=f"Edit its {config.FILE_NAME}, or name another folder.",
        )
    _make_parts(settings)
    return settings


def _make_parts(settings: config.Settings) -> None:
    from headrace.catalog import Catalog

    ignore = settings.root / ".gitignore"
    with suppress(OSError):  # a convenience: a folder that is mounted to be read only needs none
        if not ignore.exists():
            ignore.write_text(GITIGNORE, encoding="utf-8")
    if "://" not in settings.warehouse:
        place = Path(settings.warehouse.removeprefix("file:"))
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _not_writable(place, error) from error
    Catalog.open(settings.catalog_url).close()


def _not_writable(folder: Path, error: OSError) -> EnvironmentFault:
    return EnvironmentFault(
        "FOLDER_NOT_WRITABLE",
        f"{folder} cannot be written.",
        detail=error.strerror or str(error),
        hint="Name a folder that you may write to.",
    )
