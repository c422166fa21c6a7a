"""serve, web."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from headrace.addresses import parse_address
from headrace.cli.console import confirm, show
from headrace.cli.failures import FAILED
from headrace.cli.invocation import Invocation, pass_invocation
from headrace.cli.surroundings import stderr, stdout
from headrace.serve.caller.start_server import BACKGROUND, TAKEN

if TYPE_CHECKING:
    from headrace.addresses import Address
    from headrace.api.facade import Headrace
    from headrace.serve.monitoring.project_monitor import ProjectMonitor


@click.command()
@click.option("--stop", is_flag=True, help="End the project's server.")
@click.option("--status", "look", is_flag=True, help="Show whether one is up, and what it does; exit status 1 if none.")
@pass_invocation
def serve(asked: Invocation, stop: bool, look: bool) -> None:
    """Keep Spark warm for the commands of this project, until stopped.

    The first command that needs Spark starts such a server in the background, which ends after 15 idle minutes;
    [serve] in headrace.toml and --no-serve turn that off. In the foreground it stays until Ctrl-C.

    \b
    Examples:
      headrace serve
      headrace serve --status
      headrace serve --stop
    """
    if stop and look:
        raise click.UsageError("--stop and --status contradict each other.")
    if stop:
        _stop(asked)
    elif look:
        _show(asked)
    else:
        _serve(asked, background=os.environ.pop(BACKGROUND, "") != "")


@click.command()
@click.option(
    "--listen", default="127.0.0.1:9465", show_default=True, metavar="HOST:PORT", help="Where; port 0 is any."
)
@click.option("--actions", is_flag=True, help="Show buttons: refresh, pause, resume, promote, roll back.")
@click.option("--password-env", metavar="NAME", help="A variable with the password that lets people in.")
@click.option("--proxy-header", metavar="NAME", help="The header in which a proxy names the user whom it let in.")
@click.option("--proxy-from", multiple=True, metavar="ADDRESS", help="Address of that proxy; may be given again.")
@click.option(
    "--host-name", multiple=True, metavar="NAME", help="A name by which a proxy asks for it; may be given again."
)
@pass_invocation
def web(
    asked: Invocation,
    listen: str,
    actions: bool,
    password_env: str | None,
    proxy_header: str | None,
    proxy_from: tuple[str, ...],
    host_name: tuple[str, ...],
) -> None:
    """Serve a page to look at the project, until Ctrl-C.

    It prints the URL to open, which has a token; it is for this machine only unless --listen says otherwise. Looking
    starts no Spark.

    \b
    Examples:
      headrace web
      headrace web --actions
      headrace web --listen 0.0.0.0:9465 --password-env HEADRACE_WEB_PASSWORD
    """
    from headrace import config
    from headrace.web.access import access_rules
    from headrace.web.page_server import serve_page

    if password_env is not None and not os.environ.get(password_env):
        raise click.UsageError(f"--password-env names {password_env}, which is not set, or empty.")
    if proxy_from and not proxy_header:
        raise click.UsageError("--proxy-from goes with --proxy-header, which names the header that the proxy sends.")
    if wrong := next((name for name in host_name if not re.fullmatch(r"[A-Za-z0-9._-]+", name)), None):
        raise click.UsageError(f"--host-name is {wrong!r}; write a name alone, such as tables.example.org.")
    names = [name.lower() for name in host_name]
    settings, address = config.load(asked.root()), parse_address(listen, "--listen")
    password = os.environ[password_env] if password_env else None
    rules = access_rules(address, password=password, header=proxy_header, proxies=proxy_from)

    def say(url: str) -> None:
        stdout().write((json.dumps({"url": url}) if asked.json else url) + "\n")
        stdout().flush()

    serve_page(settings, address, rules, names=names, actions=actions, listening=say)


def _serve(asked: Invocation, *, background: bool) -> None:
    environment = dict(os.environ)  # before Spark sets variables of its own
    from headrace import config
    from headrace.cli.served import executor
    from headrace.serve.process import serve as serve_project

    settings = config.load(asked.root())

    def say() -> None:
        if not background and not asked.quiet:
            stderr().write(f"Serving {settings.root} (process {os.getpid()}). Ctrl-C ends it.\n")
            stderr().flush()

    kind, idle = ("background", settings.serve_idle_minutes) if background else ("foreground", None)
    execute = executor(click.get_current_context().find_root().command)
    if serve_project(settings, execute, environment, kind=kind, idle_minutes=idle, listening=say):
        return
    if background:
        raise click.exceptions.Exit(TAKEN)
    confirm(asked, {"served": True}, "Another process serves this project; `headrace serve --status` shows it.")
    raise click.exceptions.Exit(FAILED)


@contextmanager
def serving(asked: Invocation, hr: Headrace, monitor: ProjectMonitor) -> Iterator[None]:
    """Run commands of others with this process's Spark while the block runs.

    Args:
        asked: The global options.
        hr: The open project.
        monitor: Looks at it for whoever watches.
    """
    from headrace.serve.caller.words import Words

    if not hr.settings.serve_auto or not Words(["status"], os.environ).served or asked.no_serve:
        yield
        return
    environment = dict(os.environ)
    from headrace.cli.served import executor
    from headrace.serve.process import serving_beside

    execute = executor(click.get_current_context().find_root().command)
    with serving_beside(hr.settings, execute, environment, lambda: hr.spark, monitor):
        yield


@contextmanager
def watched(asked: Invocation, hr: Headrace, metrics: Address | None) -> Iterator[None]:
    """Serve commands, and metrics where they are wanted, while the block runs schedules.

    Args:
        asked: The global options.
        hr: The open project.
        metrics: Where Prometheus is answered; None for nowhere.
    """
    from headrace.serve.monitoring.project_monitor import ProjectMonitor

    monitor = ProjectMonitor(hr.settings)
    unsubscribe = hr.events.subscribe(monitor.note)
    try:
        with serving(asked, hr, monitor), _metrics(asked, monitor, metrics):
            yield
    finally:
        unsubscribe()
        monitor.close()


@contextmanager
def _metrics(asked: Invocation, monitor: ProjectMonitor, address: Address | None) -> Iterator[None]:
    if address is None:
        yield
        return
    from headrace.serve.monitoring.metrics_server import serving_metrics

    with serving_metrics(monitor, address) as listening:
        if not asked.quiet:
            stderr().write(f"Metrics: http://{listening}/metrics\n")
            stderr().flush()
        yield


def _stop(asked: Invocation) -> None:
    from headrace.serve.process import end_server, server_facts

    facts = server_facts(asked.root())
    if facts is not None and facts.get("kind") == "run":
        raise click.UsageError("`headrace run` serves this project; `headrace drain` or Ctrl-C ends it.")
    ended = end_server(asked.root())
    confirm(asked, {"stopped": ended}, "The server has ended." if ended else "No server is up.")


def _show(asked: Invocation) -> None:
    from headrace.serve.process import server_facts

    facts = server_facts(asked.root())
    show(asked, {"up": facts is not None, **(facts or {})}, lambda: (_sentence(facts),))
    if facts is None:
        raise click.exceptions.Exit(FAILED)


def tell_server(asked: Invocation) -> None:
    """Say on stderr whether a server is up."""
    if asked.quiet or asked.json:
        return
    from headrace.serve.caller.address import connect, read_address

    root = str(asked.root().resolve())
    if (connection := connect(root)) is not None:
        connection.close()
        stderr().write(f"Process {(read_address(root) or {}).get('pid')} keeps Spark warm for this project.\n")


def _sentence(facts: dict[str, Any] | None) -> str:
    if facts is None:
        return "No server is up."
    kinds = {"background": "in the background", "foreground": "in a terminal", "run": "as part of headrace run"}
    running = ", ".join(facts.get("running") or ()) or "nothing"
    return (
        f"Process {facts['pid']} serves this project {kinds.get(str(facts['kind']), '')} since {facts['started_at']}; "
        f"Spark is {facts['spark']}; {facts['commands']} commands so far; now running: {running}."
    )


VERBS = (serve, web)
