"""Runs the second act of the demonstration and shows it as it goes."""

from __future__ import annotations

import time
from pathlib import Path

from headrace.cli.console import show
from headrace.cli.invocation import Invocation
from headrace.cli.progress import following, spinning
from headrace.cli.render import demo_postgres as render
from headrace.cli.render import tables
from headrace.cli.verbs.demonstration import Teller, program


def demonstrate(asked: Invocation, folder: Path, seconds: float) -> bool:
    """Run it all; True when nothing was ever seen half, and everything is equal at the end."""
    from headrace.demo.postgres import VIEWS, PostgresDemo
    from headrace.demo.server import private_server
    from headrace.demo.shop import Customers

    began, tell = time.monotonic(), Teller(asked)
    tell.say(f"[bold]Headrace on PostgreSQL[/]: a private server, a shop under load, in {folder}")
    with private_server() as url, PostgresDemo(folder, url) as demo:
        with following(asked, demo.hr.events, "Opening the shop, capturing it, creating stream tables"):
            landed = demo.build()
        tell.say(*render.built(landed, VIEWS), *render.headings())
        with Customers(url) as customers:
            opened = time.monotonic()
            looks = []
            for look in demo.follow(customers, seconds):
                looks.append(look)
                tell.say(render.look(look))
            looks.append(demo.catch_up(customers, opened))
            tell.say(render.look(looks[-1]))
        with spinning(asked, demo.hr.events, "Comparing mirrors with PostgreSQL, stream tables with their queries"):
            same, verified = demo.same_rows(), demo.verify()
    tell.say("\n[bold]Verify[/]: every stream table against its query", *tables.verifications(verified))
    tell.say(*render.totals(looks, verified, same, time.monotonic() - began))
    tell.say(*render.go_on(folder, program()))
    if asked.json:
        document = {
            "project": str(folder),
            "looks": [look.as_dict() for look in looks],
            "mirrors_equal": same,
            "verified": [result.as_dict() for result in verified],
        }
        show(asked, document, tuple)
    return same and all(look.agree for look in looks) and all(result.ok for result in verified)
