"""A whole project with Spark that moves to a REST catalog, goes on there, and comes back."""

from __future__ import annotations

from pathlib import Path

from kit.refresh_reasons import CHEAPER
from kit.rest_server import RestServer
from kit.sparks import SHORT_LIVED_OPTIONS
from pyiceberg.catalog import load_catalog

import headrace
from headrace.api.facade import Headrace
from headrace.config import FILE_NAME
from headrace.project.new_project import init_project
from headrace.reasons import FullReason

STATEMENTS = """
CREATE NAMESPACE lake.mart;
CREATE TABLE lake.mart.orders (id BIGINT, region STRING, amount DECIMAL(12,2)) USING iceberg;
INSERT INTO lake.mart.orders VALUES (1, 'EU', 10), (2, 'US', 20);
CREATE VIEW lake.mart.large AS SELECT region, amount FROM lake.mart.orders WHERE amount > 5;
CREATE STREAM TABLE mart.revenue AS SELECT region, sum(amount) AS total FROM mart.orders GROUP BY region;
CREATE STREAM TABLE mart.rich AS SELECT region, total FROM mart.revenue WHERE total > 15;
CREATE STREAM TABLE mart.viewed AS SELECT region, count(*) AS n FROM mart.large GROUP BY region
"""

TABLES = ("revenue", "rich", "viewed")


def add(hr: Headrace, number: int, region: str) -> dict[str, FullReason | None]:
    """Insert an order by plain Spark; return why stream tables were recomputed, where they were."""
    hr.spark.sql(f"INSERT INTO lake.mart.orders VALUES ({number}, '{region}', 30)")
    reasons = {result.name: result.reason for result in hr.refresh()}
    assert all(hr.verify(f"mart.{table}").ok for table in TABLES)
    assert all(row.damage is None and not row.behind for row in hr.status())
    return reasons


def test_a_project_goes_on_where_it_has_moved_to(server: RestServer, tmp_path: Path) -> None:
    root = init_project(tmp_path / "mart").root
    file = root / FILE_NAME
    options = "\n".join(f'"{name}" = "{value}"' for name, value in SHORT_LIVED_OPTIONS.items())
    plain = file.read_text().replace("[spark]\n", f"[spark]\n{options}\n")
    file.write_text(plain)
    with headrace.open(root) as hr:
        hr.sql(STATEMENTS)
        add(hr, 3, "EU")
        before, published = hr.at(), hr.history("mart.revenue")[0].publication
        past = sorted(map(tuple, before.sql("SELECT * FROM mart.revenue").collect()))

    file.write_text(f'{plain}\n[lake]\ntype = "rest"\nuri = "{server.uri}"\n')
    assert headrace.move_catalog(root).moved
    with headrace.open(root) as hr:
        assert [tuple(row) for row in hr.spark.sql("SELECT count(*) FROM lake.mart.large").collect()] == [(3,)]
        reasons = add(hr, 4, "US")
        assert {reasons["mart.revenue"], reasons["mart.rich"]} <= CHEAPER
        assert published is not None
        assert sorted(map(tuple, hr.at(published).sql("SELECT * FROM mart.revenue").collect())) == past
        reader = load_catalog("reader", type="rest", uri=server.uri).load_table("mart.revenue").scan().to_arrow()
        rows = sorted((row["region"], int(row["total"])) for row in reader.to_pylist())
        assert rows == [("EU", 40), ("US", 50)]

    assert headrace.move_catalog(root, back=True).moved
    file.write_text(plain)
    with headrace.open(root) as hr:
        reasons = add(hr, 5, "EU")
        assert {reasons["mart.revenue"], reasons["mart.rich"]} <= CHEAPER
        assert sorted(map(tuple, hr.at(published).sql("SELECT * FROM mart.revenue").collect())) == past
