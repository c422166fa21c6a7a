"""A process that opens a project again and again, as its own and as a server's, and counts connections to the catalog.

python opener.py <project>
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa

import headrace
from headrace.api.facade import Headrace
from headrace.config import Settings, load
from headrace.serve.warm_projects import SharedSpark, WarmProject

TIMES = 2


def connections(settings: Settings) -> int:
    engine = sa.create_engine(settings.catalog_url, poolclass=sa.NullPool)
    with engine.connect() as db:
        found = db.execute(sa.text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")).scalar()
    return int(found or 0) - 1


def grown(settings: Settings, opened: Callable[[], Headrace], close: Callable[[Headrace], None]) -> list[int]:
    """Use both catalogs in projects that are opened one after the other; the connections after each."""
    counts = []
    for number in range(TIMES):
        hr = opened()
        hr.sql(f"CREATE TABLE IF NOT EXISTS k.a{number} USING iceberg AS SELECT 1 AS k")
        hr.create_stream_table(f"k.b{number}", f"SELECT k FROM k.a{number}", or_replace=True)
        close(hr)
        counts.append(connections(settings))
    return counts


def main(project: str) -> None:
    settings = load(project)
    with headrace.open(project) as hr:
        hr.sql("CREATE NAMESPACE lake.k")
    print("own", grown(settings, lambda: headrace.open(project), Headrace.close), flush=True)
    spark = SharedSpark(settings)
    served = grown(settings, lambda: WarmProject(settings, spark), lambda hr: hr.end())  # type: ignore[attr-defined]
    print("served", served, flush=True)
    spark.stop()


if __name__ == "__main__":
    main(str(Path(sys.argv[1])))
