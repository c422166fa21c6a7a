"""What makes no sense is answered alike in Python, SQL and on the command line, and changes nothing; no JVM starts."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from catalog_kit.clock import START
from catalog_kit.databases import Postgres
from catalog_kit.iceberg import Iceberg
from catalog_kit.samples import ORDERS, lake, refresh, see
from click.testing import CliRunner

import headrace
from headrace.api.facade import Headrace
from headrace.catalog import Catalog, Definition, FrontierMove, Green, Publication
from headrace.cli.main import app
from headrace.definitions.details import Details, SourceUse, to_json
from headrace.deploy.blue_settings import settings_of
from headrace.errors import HeadraceError
from headrace.names import LAKE, TableName
from headrace.project.new_project import init_project
from headrace.semantics import Semantics

ALONE, LOADING, BEHIND, FAILED = (lake(f"shop.{name}") for name in ("alone", "loading", "behind", "failed"))
ALTERED, PROMOTED, EXPIRED = (lake(f"shop.{name}") for name in ("altered", "promoted", "expired"))
SKIPPED, BLOWN = lake("shop.skipped"), lake("shop.blown")
CHANGED, READ, READER, TORN = (lake(f"shop.{name}") for name in ("changed", "read", "reader", "torn"))
KEPT = {PROMOTED: START + dt.timedelta(days=9000), EXPIRED: START, CHANGED: START + dt.timedelta(days=9000)}
"""Until when what was promoted can be taken back."""


def green_of(name: TableName) -> TableName:
    return lake(f"shop__{name.table}{'_previous' if name in KEPT else ''}.{name.table}")


def defined(name: TableName, source: TableName = ORDERS, deployment: str = "") -> Definition:
    query = f"SELECT * FROM {source}"
    details = Details(query, (), Semantics(), (), (SourceUse(source, ()),), {}, (), None, deployment=deployment)
    return Definition(name, query, (source,), details=to_json(details))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose catalog is SQLite."""
    root = init_project(tmp_path_factory.mktemp("refused") / "shop").root
    fill(f"sqlite:///{root / 'headrace.db'}")
    return root


def fill(url: str) -> None:
    """Make a stream table for everything that can stand against a promotion, or against taking one back."""
    Catalog.open(url).close()
    iceberg = Iceberg(url)
    iceberg.commit(lake("shop__taken.alone"), "theirs", catalog=LAKE)
    public = (ALONE, LOADING, BEHIND, FAILED, ALTERED, PROMOTED, EXPIRED, CHANGED, READ, READER, TORN)
    public = (*public, SKIPPED, BLOWN)
    with Catalog.open(url) as catalog:
        for name in public:
            catalog.publish(Publication(definitions=(defined(name, READ if name == READER else ORDERS),)))
        see(catalog)
        rest = [n for n in public if n != READER]
        catalog.publish(refresh(catalog, iceberg, 1, *rest))
        catalog.publish(refresh(catalog, iceberg, 1, READER, sources=(READ,)))
        for name in public[1:]:
            if name != READER:
                put(catalog, iceberg, name)
        second = green_of(lake("shop.torn")), lake("shop__torn.reader")
        beside = Green(second[1], "torn", READER, settings_of(catalog.stream_table(READER)), START)
        catalog.publish(Publication(definitions=(defined(second[1], second[0], "torn"),), greens=(beside,)))
        catalog.publish(refresh(catalog, iceberg, 3, second[1], sources=(second[0],)))
        see(catalog, snapshot=2)
        catalog.publish(refresh(catalog, iceberg, 4, BEHIND))
        catalog.stop(green_of(FAILED), "QUERY_FAILED", "its query fails")
        catalog.blow_fuse(green_of(BLOWN), {})
        skipping = FrontierMove(green_of(SKIPPED), catalog.frontiers()[green_of(SKIPPED)], skipped=3)
        catalog.publish(Publication(frontiers=(skipping,)))
        for name in (ALTERED, CHANGED):
            catalog.alter_stream_table(name, schedule="5 minutes")


def put(catalog: Catalog, iceberg: Iceberg, name: TableName) -> None:
    """Give a stream table a second generation in a deployment of its own."""
    other = green_of(name)
    beside = Green(other, name.table, name, settings_of(catalog.stream_table(name)), START)
    if name in KEPT:
        beside = Green(other, name.table, name, beside.blue, START, promoted_at=START, keep_until=KEPT[name])
    catalog.publish(Publication(definitions=(defined(other, deployment=name.table),), greens=(beside,)))
    if name != LOADING:
        catalog.publish(refresh(catalog, iceberg, 2, other))


CASES = (
    ("create", ALONE, "v2_previous", "INVALID_NAME"),
    ("create", lake("shop.nothing"), "v2", "STREAM_TABLE_NOT_FOUND"),
    ("create", ORDERS, "v2", "STREAM_TABLE_NOT_FOUND"),
    ("create", green_of(LOADING), "v2", "GREEN_OF_GREEN"),
    ("create", green_of(PROMOTED), "v2", "GREEN_OF_GREEN"),
    ("create", LOADING, "v2", "IN_DEPLOYMENT"),
    ("create", PROMOTED, "v2", "IN_DEPLOYMENT"),
    ("create", ALONE, "taken", "TABLE_EXISTS"),
    ("promote", ALONE, None, "DEPLOYMENT_NOT_FOUND"),
    ("promote", lake("shop.nothing"), None, "DEPLOYMENT_NOT_FOUND"),
    ("promote", None, "nothing", "DEPLOYMENT_NOT_FOUND"),
    ("promote", LOADING, None, "GREEN_LOADING"),
    ("promote", None, "behind", "GREEN_BEHIND"),
    ("promote", FAILED, None, "GREEN_FAILED"),
    ("promote", ALTERED, None, "GREEN_OUTDATED"),
    ("promote", SKIPPED, None, "GREEN_FAILED"),
    ("promote", BLOWN, None, "GREEN_FAILED"),
    ("promote", PROMOTED, None, "ALREADY_PROMOTED"),
    ("promote", TORN, None, "DEPLOYMENT_TORN"),
    ("promote", READER, None, "DEPLOYMENT_TORN"),
    ("auto", None, "nothing", "DEPLOYMENT_NOT_FOUND"),
    ("auto", None, "promoted", "NOTHING_TO_PROMOTE"),
    ("rollback", ALONE, None, "DEPLOYMENT_NOT_FOUND"),
    ("rollback", None, "behind", "NOT_PROMOTED"),
    ("rollback", EXPIRED, None, "ROLLBACK_EXPIRED"),
    ("rollback", CHANGED, None, "GREEN_OUTDATED"),
    ("cancel", ALONE, None, "DEPLOYMENT_NOT_FOUND"),
    ("cancel", None, "nothing", "DEPLOYMENT_NOT_FOUND"),
    ("cancel", TORN, None, "DEPLOYMENT_TORN"),
)


@pytest.mark.parametrize(
    ("verb", "name", "deployment", "code"), CASES, ids=[f"{c[0]}-{c[1] or c[2]}-{c[3]}" for c in CASES]
)
def test_refused_alike_and_nothing_changed(
    project: Path, verb: str, name: TableName | None, deployment: str | None, code: str
) -> None:
    with Catalog.open(f"sqlite:///{project / 'headrace.db'}") as catalog:
        before = everything(catalog)
        with headrace.open(project) as hr:
            for act in (in_python(hr, verb, name, deployment), in_sql(hr, verb, name, deployment)):
                with pytest.raises(HeadraceError) as refused:
                    act()
                assert refused.value.code == code, refused.value
                assert refused.value.hint
        printed = CliRunner().invoke(app, ["-p", str(project), "--json", *on_the_command_line(verb, name, deployment)])
        assert printed.exit_code == 1, printed.output
        assert json.loads(printed.stderr)["error"]["code"] == code
        assert "Traceback" not in printed.output
        assert everything(catalog) == before


def test_refused_by_postgresql_alike(tmp_path: Path, postgres: Postgres) -> None:
    url = postgres.fresh()
    init_project(tmp_path / "shop", catalog_url=url)
    fill(url)
    with headrace.open(tmp_path / "shop") as hr, Catalog.open(url) as catalog:
        before = everything(catalog)
        answers = {case: answer(in_python(hr, *case[:3])) for case in CASES}
        assert answers == {case: case[3] for case in CASES}
        assert everything(catalog) == before
        assert {lake(info.name): info.state for info in hr.green_status() if lake(info.name) in STATES} == {
            name: state for name, (state, _) in STATES.items()
        }


def answer(act: Callable[[], object]) -> str:
    with pytest.raises(HeadraceError) as refused:
        act()
    return refused.value.code


STATES = {
    LOADING: ("loading", ()),
    BEHIND: ("catching up", ()),
    FAILED: ("failed", ("GREEN_FAILED",)),
    SKIPPED: ("blocked", ("GREEN_FAILED",)),
    BLOWN: ("blocked", ("GREEN_FAILED",)),
    ALTERED: ("blocked", ("GREEN_OUTDATED",)),
    TORN: ("converged", ()),  # which is promoted together with its reader
    PROMOTED: ("promoted", ()),
    EXPIRED: ("promoted", ("ROLLBACK_EXPIRED",)),
    CHANGED: ("promoted", ("GREEN_OUTDATED",)),
}


def test_status_says_what_an_exchange_would_be_refused_for(project: Path) -> None:
    with headrace.open(project) as hr:
        infos = {lake(info.name): info for info in hr.green_status()}
        assert {lake(i.name): (i.blocked_by, i.lag_rows) for i in hr.sql("SHOW DEPLOYMENTS")} == {
            name: (info.blocked_by, info.lag_rows) for name, info in infos.items()
        }
    found = {n: (infos[n].state, tuple(why.partition(":")[0] for why in infos[n].blocked_by)) for n in STATES}
    assert found == STATES
    assert infos[SKIPPED].blocked_by[0].endswith("3 changed rows of its sources were skipped")
    assert infos[BEHIND].lag_rows == {"shop.orders": None}  # its metadata cannot be read
    printed = CliRunner().invoke(app, ["-p", str(project), "deploy", "status"])
    assert "A promotion would be refused. GREEN_OUTDATED: Schedule of shop.altered changed" in printed.output
    assert "1 of shop.orders, rows unknown" in printed.output
    assert "nothing was" not in printed.output.lower()


def everything(catalog: Catalog) -> object:
    with catalog.reading() as reader:
        tables = [(t.name, t.query, t.generation, t.status) for t in reader.stream_tables()]
        return tables, reader.greens(), reader.pointers(), reader.frontiers(), reader.publications(1)


def in_python(hr: Headrace, verb: str, name: TableName | None, deployment: str | None) -> Callable[[], object]:
    text = None if name is None else str(name)
    if verb == "create":
        return lambda: hr.create_green(text or "", deployment=deployment or "")
    if verb == "promote":
        return lambda: hr.promote_all_green(deployment or "") if text is None else hr.promote_green(text, force=True)
    if verb == "auto":
        return lambda: hr.auto_promote(deployment or "")
    act = hr.rollback_green if verb == "rollback" else hr.cancel_green
    return lambda: act(text, deployment=deployment)


def in_sql(hr: Headrace, verb: str, name: TableName | None, deployment: str | None) -> Callable[[], object]:
    if verb == "create":
        return lambda: hr.sql(f"CREATE GREEN STREAM TABLE {name} IN DEPLOYMENT {deployment}")
    if verb == "auto":
        return lambda: hr.sql(f"ALTER DEPLOYMENT {deployment} AUTO PROMOTE")
    what = f"DEPLOYMENT {deployment}" if name is None else f"GREEN STREAM TABLE {name}"
    return lambda: hr.sql(f"{verb.upper()} {what}")


def on_the_command_line(verb: str, name: TableName | None, deployment: str | None) -> list[str]:
    if verb == "create":
        return ["deploy", "create", str(name), "--deployment", str(deployment)]
    if verb == "auto":
        return ["deploy", "auto", str(deployment)]
    return ["deploy", verb, *(["--all", str(deployment)] if name is None else [str(name)])]
