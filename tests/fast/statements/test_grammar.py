"""Our own statements, and how wrong ones are answered."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kit.one_statement import parse_statement

from headrace.errors import UserError
from headrace.statements.grammar import parse_script
from headrace.statements.parsed_statements import (
    AdvanceWatermark,
    AlterDeployment,
    AlterStreamTable,
    CreateGreen,
    CreateStreamTable,
    CreateWatermarkGroup,
    DeclareKey,
    DropKey,
    DropStreamTable,
    DropWatermarkGroup,
    EndGreen,
    ExplainStreamTable,
    RefreshStreamTable,
    RepairStreamTable,
    ResolveFuse,
    SetGate,
    ShowDeployments,
    ShowGates,
    ShowKeys,
    ShowStreamTables,
    ShowWatermarks,
    SparkStatement,
    Statement,
)


def test_create_in_full() -> None:
    script = """-- first; comment
    CREATE OR REPLACE STREAM TABLE IF NOT EXISTS shop.`re;v`
      SCHEDULE '1 minute' REFRESH MODE differential WITH (a.b = 1, 'c' = 'd', e = -2, f = true) INITIALIZE FALSE
      AS WITH x AS (SELECT 1) SELECT ';' FROM x -- end
    ; SELECT 2"""
    create, spark = parse_script(script)
    assert isinstance(create, CreateStreamTable)
    assert create.name == ("shop", "re;v")
    assert create.query.sql == "WITH x AS (SELECT 1) SELECT ';' FROM x -- end"
    assert script[create.query.start :].startswith("WITH x AS")
    assert (create.schedule, create.refresh_mode, create.initialize) == ("1 minute", "DIFFERENTIAL", False)
    assert create.properties == {"a.b": "1", "c": "d", "e": "-2", "f": "true"}
    assert create.or_replace
    assert create.if_not_exists
    assert isinstance(spark, SparkStatement)
    assert spark.sql == "SELECT 2"


def test_create_at_its_shortest() -> None:
    create = parse_statement("create stream table t as table s")
    assert isinstance(create, CreateStreamTable)
    assert (create.name, create.query.sql, create.schedule) == (("t",), "table s", None)
    assert (create.refresh_mode, create.or_replace, create.if_not_exists, create.initialize) == (
        "AUTO",
        False,
        False,
        True,
    )


def test_options_come_in_any_order() -> None:
    create = parse_statement("CREATE STREAM TABLE t REFRESH MODE FULL SCHEDULE '5m' AS SELECT 1")
    assert isinstance(create, CreateStreamTable)
    assert (create.schedule, create.refresh_mode) == ("5m", "FULL")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SET SCHEDULE 'it''s'", {"schedule": "it's"}),
        ("SET REFRESH MODE auto", {"refresh_mode": "AUTO"}),
        ("SET SCHEDULE '5m', REFRESH MODE FULL", {"schedule": "5m", "refresh_mode": "FULL"}),
        ("SET PROPERTIES (tier = 'cold', pool = a)", {"properties": {"tier": "cold", "pool": "a"}}),
        ("SET SCHEDULE 'MANUAL', SET PROPERTIES (tier = hot)", {"schedule": "MANUAL", "properties": {"tier": "hot"}}),
        ("DROP SCHEDULE", {"drop_schedule": True}),
        ("DROP PROPERTIES (tier, 'pool')", {"drop_properties": ("tier", "pool"), "drop_schedule": False}),
    ],
)
def test_alter(sql: str, expected: dict[str, object]) -> None:
    statement = parse_statement(f"ALTER STREAM TABLE a.b {sql}")
    assert isinstance(statement, AlterStreamTable)
    assert {key: getattr(statement, key) for key in expected} == expected
    assert statement.query is None


def test_fuses_are_resolved() -> None:
    statement = parse_statement("ALTER STREAM TABLE a.b RESOLVE FUSE skip")
    assert isinstance(statement, ResolveFuse)
    assert (statement.name, statement.resolution) == (("a", "b"), "SKIP")


def test_keys() -> None:
    declared = parse_statement("DECLARE KEY (order_id, `line no`) ON a.b NOT CHECKED")
    assert isinstance(declared, DeclareKey)
    assert (declared.source, declared.columns, declared.check) == (("a", "b"), ("order_id", "line no"), False)
    dropped = parse_statement("DROP KEY (id) ON a.b")
    assert isinstance(dropped, DropKey)
    assert (dropped.source, dropped.columns) == (("a", "b"), ("id",))
    assert isinstance(parse_statement("SHOW KEYS"), ShowKeys)
    assert isinstance(parse_statement("DECLARE key INT"), SparkStatement)


def test_gates() -> None:
    closing = parse_statement("CLOSE GATE ON a.b, crm")
    assert isinstance(closing, SetGate)
    assert (closing.sources, closing.closes) == ((("a", "b"), ("crm",)), True)
    opening = parse_statement("OPEN GATE ON a.b")
    assert isinstance(opening, SetGate)
    assert not opening.closes
    assert isinstance(parse_statement("SHOW GATES"), ShowGates)


def test_watermarks() -> None:
    group = parse_statement("CREATE WATERMARK GROUP loads (a.b, `c`.d) TOLERANCE '5 minutes'")
    assert isinstance(group, CreateWatermarkGroup)
    assert (group.name, group.sources, group.tolerance) == ("loads", (("a", "b"), ("c", "d")), "5 minutes")
    dropped = parse_statement("DROP WATERMARK GROUP IF EXISTS loads")
    assert isinstance(dropped, DropWatermarkGroup)
    assert dropped.if_exists
    advanced = parse_statement("ADVANCE WATERMARK OF a.b TO '2026-03-01T06:00:00Z'")
    assert isinstance(advanced, AdvanceWatermark)
    assert (advanced.source, advanced.moment) == (("a", "b"), "2026-03-01T06:00:00Z")
    assert isinstance(parse_statement("SHOW WATERMARKS"), ShowWatermarks)


def test_alter_query() -> None:
    statement = parse_statement("ALTER STREAM TABLE a SET REFRESH MODE FULL, QUERY AS SELECT 1, 2 FROM t")
    assert isinstance(statement, AlterStreamTable)
    assert statement.query is not None
    assert (statement.query.sql, statement.refresh_mode) == ("SELECT 1, 2 FROM t", "FULL")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("DROP STREAM TABLE a.b", DropStreamTable(sql="", name=("a", "b"))),
        ("DROP STREAM TABLE IF EXISTS a CASCADE", DropStreamTable(sql="", name=("a",), if_exists=True, cascade=True)),
        ("REFRESH STREAM TABLE a, b.c FULL", RefreshStreamTable(sql="", names=(("a",), ("b", "c")), full=True)),
        ("REFRESH ALL STREAM TABLES", RefreshStreamTable(sql="")),
        ("REPAIR STREAM TABLE a, b.c", RepairStreamTable(sql="", names=(("a",), ("b", "c")))),
        ("REPAIR ALL STREAM TABLES", RepairStreamTable(sql="")),
        ("EXPLAIN STREAM TABLE a.b", ExplainStreamTable(sql="", name=("a", "b"))),
        ("EXPLAIN FULL STREAM TABLE a", ExplainStreamTable(sql="", name=("a",), refresh_mode="FULL")),
        ("EXPLAIN ANALYZE STREAM TABLE a", ExplainStreamTable(sql="", name=("a",), analyze=True)),
        ("SHOW STREAM TABLES", ShowStreamTables(sql="")),
        ("SHOW STREAM TABLES LIKE 'a*'", ShowStreamTables(sql="", like="a*")),
        ("SHOW STREAM TABLES IN a.b LIKE 'x'", ShowStreamTables(sql="", namespace=("a", "b"), like="x")),
    ],
)
def test_the_other_statements(sql: str, expected: Statement) -> None:
    statement = parse_statement(sql)
    assert statement == replace(expected, sql=sql)


def test_explain_of_a_query() -> None:
    statement = parse_statement("EXPLAIN DIFFERENTIAL STREAM TABLE AS SELECT a FROM t")
    assert isinstance(statement, ExplainStreamTable)
    assert statement.name is None
    assert statement.query is not None
    assert (statement.query.sql, statement.refresh_mode) == ("SELECT a FROM t", "DIFFERENTIAL")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "CREATE TABLE stream (a INT)",
        "DROP TABLE stream",
        "EXPLAIN SELECT * FROM stream",
        "SHOW TABLES",
        "REFRESH TABLE stream",
        "EXPLAIN EXTENDED SELECT 1",
        "CREATE STREAMING TABLE x AS SELECT 1",
    ],
)
def test_everything_else_is_sparks(sql: str) -> None:
    assert parse_statement(sql) == SparkStatement(sql=sql)


@pytest.mark.parametrize(
    ("sql", "at", "hint"),
    [
        ("CREATE STREAM TABLE x SCHEDULE 5 AS SELECT 1", "5", "SCHEDULE '1 minute'"),
        ("CREATE STREAM TABLE x", "", "AS SELECT"),
        ("CREATE STREAM TABLE x AS", "", "AS SELECT"),
        ("CREATE STREAM TABLE IF EXISTS x AS SELECT 1", "EXISTS", "IF NOT EXISTS"),
        ("CREATE STREAM TABEL x AS SELECT 1", "TABEL", "CREATE [OR REPLACE] STREAM TABLE"),
        ("CREATE STREAM TABLE x REFRESH MODE fast AS SELECT 1", "fast", "AUTO|FULL|DIFFERENTIAL"),
        ("CREATE STREAM TABLE x WITH (a) AS SELECT 1", ")", "WITH (key = value"),
        ("CREATE STREAM TABLE x INITIALIZE maybe AS SELECT 1", "maybe", "INITIALIZE TRUE|FALSE"),
        ("ALTER STREAM TABLE x SET y", "y", "SET REFRESH MODE"),
        ("ALTER STREAM TABLE x RESOLVE FUSE", "", "RESOLVE FUSE APPLY|SKIP|REINITIALIZE"),
        ("ALTER STREAM TABLE x DROP SCHEDULE now", "now", "DROP SCHEDULE"),
        ("ALTER STREAM TABLE x DROP PROPERTIES ()", ")", "DROP PROPERTIES (key"),
        ("ALTER STREAM TABLE x DROP PROPERTIES (a = 1)", "=", "DROP PROPERTIES (key"),
        ("CLOSE GATE a", "a", "CLOSE GATE ON"),
        ("OPEN GATE ON", "", "OPEN GATE ON"),
        ("CREATE WATERMARK GROUP x AS a", "AS", "CREATE WATERMARK GROUP name ("),
        ("CREATE WATERMARK GROUP x (a, b)", "", "TOLERANCE '5 minutes'"),
        ("ADVANCE WATERMARK OF a TO now", "now", "ADVANCE WATERMARK OF"),
        ("SHOW GATES now", "now", "SHOW GATES"),
        ("DECLARE KEY () ON a.b", ")", "DECLARE KEY"),
        ("DECLARE KEY (id, 1) ON a.b", "1", "DECLARE KEY"),
        ("DECLARE KEY (id) a.b", "a", "DECLARE KEY"),
        ("DROP KEY (id) ON a.b CASCADE", "CASCADE", "DROP KEY"),
        ("SHOW KEYS now", "now", "SHOW KEYS"),
        ("DROP STREAM TABLE", "", "[CASCADE]"),
        ("DROP STREAM TABLE x y", "y", "[CASCADE]"),
        ("REFRESH STREAM TABLE a b", "b", "[FULL]"),
        ("REFRESH ALL STREAM x", "x", "REFRESH ALL STREAM TABLES"),
        ("SHOW STREAM TABLES LIKE x", "x", "LIKE 'pattern'"),
        ("EXPLAIN ANALYZE STREAM TABLE AS SELECT 1", "SELECT", "EXPLAIN ANALYZE STREAM TABLE namespace.table"),
        ("EXPLAIN STREAM TABLE", "", "EXPLAIN [FULL|DIFFERENTIAL]"),
    ],
)
def test_mistakes_are_shown_with_place_and_form(sql: str, at: str, hint: str) -> None:
    with pytest.raises(UserError) as error:
        parse_script(f"SELECT 1;\n  {sql}")
    assert error.value.code == "SYNTAX_ERROR"
    place = error.value.place
    assert place is not None
    assert place.line == 2
    assert place.column == (2 + sql.rindex(at) + 1 if at else 2 + len(sql) + 1)
    assert hint in (error.value.hint or "")


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("CREATE GREEN STREAM TABLE a.b", CreateGreen(name=("a", "b"))),
        ("CREATE NEW GREEN STREAM TABLE a.b", CreateGreen(name=("a", "b"), new=True)),
        ("DROP STREAM TABLE a.b IN DEPLOYMENT v2", DropStreamTable(sql="", name=("a", "b"), deployment="v2")),
        (
            "CREATE GREEN STREAM TABLE a.b IN DEPLOYMENT v2 SCHEDULE '1 minute' REFRESH MODE FULL WITH (tier = hot)",
            CreateGreen(
                name=("a", "b"),
                deployment="v2",
                schedule="1 minute",
                refresh_mode="FULL",
                properties={"tier": "hot"},
            ),
        ),
        ("PROMOTE GREEN STREAM TABLE a.b", EndGreen(verb="PROMOTE", name=("a", "b"))),
        (
            "PROMOTE DEPLOYMENT v2 FORCE DRY RUN",
            EndGreen(verb="PROMOTE", deployment="v2", force=True, dry_run=True),
        ),
        ("ROLLBACK DEPLOYMENT v2", EndGreen(verb="ROLLBACK", deployment="v2")),
        ("CANCEL GREEN STREAM TABLE a.b", EndGreen(verb="CANCEL", name=("a", "b"))),
        ("SHOW DEPLOYMENTS", ShowDeployments()),
        ("SHOW DEPLOYMENTS WITH (lag_threshold = '1 m')", ShowDeployments(properties={"lag_threshold": "1 m"})),
        (
            "CREATE GREEN STREAM TABLE a.b AUTO PROMOTE IN DEPLOYMENT v2",
            CreateGreen(name=("a", "b"), deployment="v2", auto_promote={}),
        ),
        (
            "ALTER DEPLOYMENT v2 AUTO PROMOTE (window = '02:00-04:00', verify = true)",
            AlterDeployment(deployment="v2", auto_promote={"window": "02:00-04:00", "verify": "true"}),
        ),
        ("ALTER DEPLOYMENT v2 AUTO PROMOTE", AlterDeployment(deployment="v2", auto_promote={})),
        ("ALTER DEPLOYMENT v2 NO AUTO PROMOTE", AlterDeployment(deployment="v2", auto_promote=None)),
        (
            "PROMOTE DEPLOYMENT v2 VERIFY WITH (watch = '1 hour')",
            EndGreen(verb="PROMOTE", deployment="v2", verify=True, properties={"watch": "1 hour"}),
        ),
    ],
)
def test_deployments(text: str, statement: Statement) -> None:
    assert replace(parse_statement(text), sql="", start=0) == statement


def test_a_green_may_have_a_query_of_its_own() -> None:
    green = parse_statement("CREATE GREEN STREAM TABLE a.b INITIALIZE FALSE AS SELECT 1")
    assert isinstance(green, CreateGreen)
    assert green.query is not None
    assert (green.query.sql, green.initialize) == ("SELECT 1", False)
