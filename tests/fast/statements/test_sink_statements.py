"""Statements about sinks: read by the registry of their kinds and by the kind."""

from __future__ import annotations

import pytest
from kit.one_statement import parse_statement

from headrace.errors import Unsupported, UserError
from headrace.sinks.sink_kind import SinkRequest
from headrace.statements.grammar import parse_script
from headrace.statements.parsed_statements import (
    AlterSink,
    CreateSink,
    DropSink,
    ShowSinks,
    Statement,
    VerifySink,
)


def test_an_unknown_kind_is_refused() -> None:
    """And nothing of a script that has one is run, since all of it is read first."""
    script = "INSERT INTO t VALUES (1);\nCREATE SINK out FROM shop.revenue INTO oracle 'x'"
    with pytest.raises(Unsupported, match="SINK_KIND_UNKNOWN") as caught:
        parse_script(script)
    error = caught.value
    assert "kind of sink ORACLE" in error.message
    assert "sinks of kind POSTGRES" in (error.detail or "")
    assert error.place is not None
    assert error.place.line == 2
    assert error.place.text[error.place.column - 1 :].startswith("oracle")


URL = "postgresql://db/x"


@pytest.mark.parametrize(
    ("sql", "request_", "schedule"),
    [
        (f"CREATE SINK out FROM a.b INTO POSTGRES '{URL}' TABLE t", SinkRequest(URL, "t"), None),
        (
            f"create sink out from a.b into postgres '{URL}' table public.\"Odd one\" key (x, y) "
            "placement local on conflict overwrite schedule '1 minute'",
            SinkRequest(URL, 'public."Odd one"', ("x", "y"), {"placement": "local", "on_conflict": "overwrite"}),
            "1 minute",
        ),
        (
            f"CREATE SINK out FROM a.b INTO POSTGRES '{URL}' TABLE t KEY (x) PLACEMENT DISTRIBUTED BY (x) "
            "COLOCATED WITH s.o ON CONFLICT REFUSE SCHEDULE 'MANUAL'",
            SinkRequest(
                URL,
                "t",
                ("x",),
                {"placement": "distributed", "distributed_by": "x", "colocated_with": "s.o", "on_conflict": "refuse"},
            ),
            "MANUAL",
        ),
        (
            f"CREATE SINK out FROM a.b INTO POSTGRES '{URL}' TABLE t PLACEMENT AUTO BY (x)",
            SinkRequest(URL, "t", (), {"placement": "auto", "distributed_by": "x"}),
            None,
        ),
        (
            f"CREATE SINK out FROM a.b INTO POSTGRES '{URL}' TABLE t PLACEMENT REFERENCE",
            SinkRequest(URL, "t", (), {"placement": "reference"}),
            None,
        ),
        (
            f"CREATE SINK out FROM a.b INTO POSTGRES '{URL}' TABLE s.t SCHEDULE 'MANUAL'",
            SinkRequest(URL, "s.t"),
            "MANUAL",
        ),
    ],
)
def test_a_sink_is_read(sql: str, request_: SinkRequest, schedule: str | None) -> None:
    found = parse_statement(sql)
    assert isinstance(found, CreateSink)
    assert (found.name, found.stream, found.kind, found.if_not_exists) == ("out", ("a", "b"), "postgres", False)
    assert (found.request, found.schedule) == (request_, schedule)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("ALTER SINK out SET SCHEDULE '1 hour'", AlterSink(name="out", change="SET", schedule="1 hour")),
        (
            "ALTER SINK out SET ON CONFLICT REFUSE",
            AlterSink(name="out", change="SET", options={"on_conflict": "refuse"}),
        ),
        (
            'ALTER SINK out SET PLACEMENT DISTRIBUTED BY (a) COLOCATED WITH public."Odd one"',
            AlterSink(
                name="out",
                change="SET",
                options={"placement": "distributed", "distributed_by": "a", "colocated_with": 'public."Odd one"'},
            ),
        ),
        ("ALTER SINK out DROP SCHEDULE", AlterSink(name="out", change="DROP")),
        ("ALTER SINK out RESYNC", AlterSink(name="out", change="RESYNC")),
        ("DROP SINK IF EXISTS out", DropSink(name="out", if_exists=True)),
        ("VERIFY SINK out", VerifySink(name="out")),
        ("SHOW SINKS", ShowSinks()),
    ],
)
def test_other_statements_are_read(sql: str, expected: Statement) -> None:
    from dataclasses import replace

    assert replace(parse_statement(sql), sql="", start=0) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE SINK",
        "CREATE SINK out INTO x",
        "CREATE SINK out FROM a.b",
        "CREATE SINK out FROM a.b INTO 'x'",
        f"CREATE SINK out FROM a.b INTO POSTGRES '{URL}'",
        f"CREATE SINK out FROM a.b INTO POSTGRES '{URL}' TABLE KEY (x)",
        f"CREATE SINK out FROM a.b INTO POSTGRES '{URL}' TABLE t ON CONFLICT IGNORE",
        f"CREATE SINK out FROM a.b INTO POSTGRES '{URL}' TABLE t SCHEDULE",
        f"CREATE SINK out FROM a.b INTO POSTGRES '{URL}' TABLE t PLACEMENT LOCAL BY (x)",
        f"CREATE SINK out FROM a.b INTO POSTGRES '{URL}' TABLE t PLACEMENT DISTRIBUTED BY (x, y)",
        f"CREATE SINK out FROM a.b INTO POSTGRES '{URL}' TABLE t PLACEMENT DISTRIBUTED COLOCATED WITH",
        "ALTER SINK out SET",
        "ALTER SINK out FORGET",
        "VERIFY SINK",
    ],
)
def test_a_statement_that_cannot_be_read_is_a_mistake(sql: str) -> None:
    with pytest.raises(UserError, match="SYNTAX_ERROR"):
        parse_statement(sql)
