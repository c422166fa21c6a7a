"""The text that `help` shows at the prompt."""

from __future__ import annotations

import click

from headrace.cli.prompt.switches import MORE_FORMS, SWITCHES
from headrace.statements.grammar import BEGINNINGS

STATEMENTS = """\
SQL, ended by ; and run by Spark, and Headrace's own statements:
  CREATE [OR REPLACE] STREAM TABLE [IF NOT EXISTS] name [SCHEDULE '1 minute'] [REFRESH MODE mode] AS query;
  ALTER STREAM TABLE name SET SCHEDULE '5 minutes';     DROP STREAM TABLE [IF EXISTS] name [CASCADE];
  REFRESH STREAM TABLE name [FULL];                     REFRESH ALL STREAM TABLES;
  EXPLAIN STREAM TABLE name;                            SHOW STREAM TABLES;
These begin so; one that is not whole is answered with its form:
"""
VERBS = """\
All verbs of the command line with their options: status, refresh shop.revenue --full, help history.
Words are quoted as in a shell: explain "SELECT …". create, alter and drop are ended by ;
What may be a statement is one: EXPLAIN SELECT … is Spark's, explain shop.revenue is the verb.

"""
KEYS = "Tab completes names, columns, verbs and options. Ctrl-C cancels what runs, or drops the line. Up recalls."


def help_text(verbs: click.Group) -> str:
    """Return everything that can be typed.

    Args:
        verbs: The group of all verbs.
    """
    listed = click.HelpFormatter(width=100)
    verbs.format_commands(click.Context(verbs), listed)
    switches = click.HelpFormatter(width=100)
    with switches.section("Switches"):
        switches.write_dl([(switch.form, switch.help) for switch in SWITCHES.values()] + list(MORE_FORMS))
    beginnings = click.wrap_text(", ".join(BEGINNINGS), 100, "  ", "  ")
    parts = (f"{STATEMENTS}{beginnings}\n", switches.getvalue(), VERBS + listed.getvalue(), KEYS)
    return "\n".join(part.lstrip("\n") for part in parts) + "\n"
