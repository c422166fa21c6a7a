"""Runs parsed statements: ours through the API, every other one in Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from headrace.errors import HeadraceError, UserError, place_at
from headrace.names import LAKE, quote, split_identifier
from headrace.statements import parsed_statements as st
from headrace.suggestions import suggesting_tables

if TYPE_CHECKING:
    from headrace.api.facade import Headrace

PROMOTION_KEYWORDS = ("rollback_window", "keep_fresh", "lag_threshold", "checks", "watch", "on_trouble")


def run_statement(hr: Headrace, statement: st.Statement, script: str) -> Any:
    """Run one statement of a script.

    Args:
        hr: The project.
        statement: The statement.
        script: The text it stands in; errors name places in it.

    Returns:
        What the API method of that name returns; a DataFrame for a Spark statement.
    """
    action = _ACTIONS.get(type(statement))
    if action is not None:
        return action(hr, statement, script)
    hr.refuse_own_tables(statement.sql, script, statement.start)
    from headrace.spark.errors import translated

    placed = _placed(script, statement.start)
    with placed, suggesting_tables(hr.relations), translated(statement.sql):
        return hr.spark.sql(statement.sql)


def _text(name: tuple[str, ...]) -> str:
    return ".".join(quote(part) for part in name)


@contextmanager
def _placed(script: str, start: int) -> Iterator[None]:
    """Turn places within a part of a script into places within the script."""
    try:
        yield
    except HeadraceError as error:
        if error.place is not None and start:
            line_start = _offset_of_line(script[start:], error.place.line)
            error.place = place_at(script, start + line_start + error.place.column - 1)
        raise


def _offset_of_line(text: str, line: int) -> int:
    return sum(len(part) for part in text.splitlines(keepends=True)[: line - 1])


def _create(hr: Headrace, statement: st.CreateStreamTable, script: str) -> Any:
    with _placed(script, statement.query.start):
        return hr.create_stream_table(
            _text(statement.name),
            statement.query.sql,
            schedule=statement.schedule,
            refresh_mode=statement.refresh_mode,
            initialize=statement.initialize,
            if_not_exists=statement.if_not_exists,
            or_replace=statement.or_replace,
            options=statement.properties or None,
        )


def _alter(hr: Headrace, statement: st.AlterStreamTable, script: str) -> Any:
    with _placed(script, statement.query.start if statement.query else 0):
        hr.alter_stream_table(
            _text(statement.name),
            schedule=statement.schedule,
            clear_schedule=statement.drop_schedule,
            refresh_mode=statement.refresh_mode,
            query=statement.query.sql if statement.query else None,
            options={**statement.properties, **dict.fromkeys(statement.drop_properties)} or None,
        )


def _resolve_fuse(hr: Headrace, statement: st.ResolveFuse, script: str) -> Any:
    return hr.resolve_fuse(_text(statement.name), statement.resolution)


def _drop(hr: Headrace, statement: st.DropStreamTable, script: str) -> Any:
    if statement.deployment is not None:
        return hr.drop_with_green(_text(statement.name), statement.deployment)
    return hr.drop_stream_table(_text(statement.name), if_exists=statement.if_exists, cascade=statement.cascade)


def _refresh(hr: Headrace, statement: st.RefreshStreamTable, script: str) -> Any:
    if len(statement.names) == 1:
        return hr.refresh(_text(statement.names[0]), full=statement.full)
    return hr.refresh([_text(n) for n in statement.names] or None, full=statement.full)


def _repair(hr: Headrace, statement: st.RepairStreamTable, script: str) -> Any:
    return hr.repair([_text(n) for n in statement.names] or None)


def _explain(hr: Headrace, statement: st.ExplainStreamTable, script: str) -> Any:
    if statement.query is not None:
        with _placed(script, statement.query.start):
            return hr.explain_query(statement.query.sql, refresh_mode=statement.refresh_mode)
    name = _text(statement.name or ())
    return hr.explain(name, refresh_mode=statement.refresh_mode, analyze=statement.analyze)


def _show(hr: Headrace, statement: st.ShowStreamTables, script: str) -> Any:
    within = tuple(part.lower() for part in statement.namespace or ())
    within = within[1:] if within[:1] == (LAKE,) else within  # names come without it
    patterns = statement.like.lower().split("|") if statement.like else ["*"]

    def shown(name: str) -> bool:
        *namespace, table = split_identifier(name.lower())
        return tuple(namespace[: len(within)]) == within and any(fnmatchcase(table, p) for p in patterns)

    return tuple(info for info in hr.status() if shown(info.name))


def _show_create(hr: Headrace, statement: st.ShowCreateStreamTable, script: str) -> Any:
    return hr.show_create([_text(name) for name in statement.names])


def _create_green(hr: Headrace, statement: st.CreateGreen, script: str) -> Any:
    with _placed(script, statement.query.start if statement.query else 0):
        return hr.create_green(
            _text(statement.name),
            statement.query.sql if statement.query else None,
            schedule=statement.schedule,
            refresh_mode=statement.refresh_mode,
            options=statement.properties or None,
            deployment=statement.deployment,
            initialize=statement.initialize,
            auto_promote=statement.auto_promote,
            new=statement.new,
        )


def _alter_deployment(hr: Headrace, statement: st.AlterDeployment, script: str) -> Any:
    return hr.auto_promote(statement.deployment, statement.auto_promote)


def _end_green(hr: Headrace, statement: st.EndGreen, script: str) -> Any:
    name = None if statement.name is None else _text(statement.name)
    deployment = statement.deployment
    if statement.verb == "ROLLBACK":
        return hr.rollback_green(name, deployment=deployment)
    if statement.verb == "CANCEL":
        return hr.cancel_green(name, deployment=deployment)
    from headrace.deploy.promotion_options import parse_promotion_options

    how = parse_promotion_options(statement.properties)
    asked: dict[str, Any] = {key: getattr(how, key) for key in PROMOTION_KEYWORDS}
    asked |= {"force": how.force or statement.force, "verify": how.verify or statement.verify}
    if name is not None:
        return hr.promote_green(name, dry_run=statement.dry_run, **asked)
    return hr.promote_all_green(deployment or "", dry_run=statement.dry_run, **asked)


def _show_deployments(hr: Headrace, statement: st.ShowDeployments, script: str) -> Any:
    from headrace.deploy.promotion_options import duration

    if unknown := set(statement.properties) - {"lag_threshold"}:
        raise UserError(
            "INVALID_OPTION", f"SHOW DEPLOYMENTS has no option {', '.join(sorted(unknown))}.", hint="Use lag_threshold."
        )
    threshold = statement.properties.get("lag_threshold")
    return hr.green_status(lag_threshold=None if threshold is None else duration("lag_threshold", threshold))


def _create_source(hr: Headrace, statement: st.CreateSource, script: str) -> Any:
    return hr.sources.create(
        statement.name,
        statement.request.address,
        statement.request.tables,
        kind=statement.kind,
        options=statement.request.options,
        if_not_exists=statement.if_not_exists,
    )


def _alter_source(hr: Headrace, statement: st.AlterSource, script: str) -> Any:
    if statement.change == "ADD":
        return hr.sources.add_tables(statement.name, statement.tables, text_columns=statement.text_columns)
    if statement.change == "DROP":
        return hr.sources.drop_tables(statement.name, statement.tables)
    return hr.sources.resnapshot(statement.name, statement.tables, shards=statement.shards)


def _alter_shard(hr: Headrace, statement: st.AlterShard, script: str) -> Any:
    if statement.change == "ADD":
        return hr.sources.add_node(statement.name, statement.node)
    if statement.change == "DROP":
        return hr.sources.drop_shard(statement.name, statement.shard)
    return hr.sources.move_shard(statement.name, statement.shard, statement.url)


def _drop_source(hr: Headrace, statement: st.DropSource, script: str) -> Any:
    return hr.sources.drop(statement.name, if_exists=statement.if_exists)


def _show_sources(hr: Headrace, statement: st.ShowSources, script: str) -> Any:
    return hr.sources.list()


def _create_sink(hr: Headrace, statement: st.CreateSink, script: str) -> Any:
    return hr.sinks.create(
        statement.name,
        _text(statement.stream),
        statement.request.address,
        statement.request.table,
        key=statement.request.key,
        schedule=statement.schedule,
        kind=statement.kind,
        options=statement.request.options,
        if_not_exists=statement.if_not_exists,
    )


def _alter_sink(hr: Headrace, statement: st.AlterSink, script: str) -> Any:
    if statement.change == "RESYNC":
        return hr.sinks.resync(statement.name)
    if statement.change == "PAUSE":
        return hr.sinks.pause(statement.name)
    if statement.change == "RESUME":
        return hr.sinks.resume(statement.name)
    clear = statement.change == "DROP"
    return hr.sinks.alter(statement.name, schedule=statement.schedule, clear_schedule=clear, options=statement.options)


def _drop_sink(hr: Headrace, statement: st.DropSink, script: str) -> Any:
    return hr.sinks.drop(statement.name, if_exists=statement.if_exists)


def _verify_sink(hr: Headrace, statement: st.VerifySink, script: str) -> Any:
    return hr.sinks.verify(statement.name)


def _show_sinks(hr: Headrace, statement: st.ShowSinks, script: str) -> Any:
    return hr.sinks.list()


def _set_gate(hr: Headrace, statement: st.SetGate, script: str) -> Any:
    sources = [_text(name) for name in statement.sources]
    return hr.close_gate(sources) if statement.closes else hr.open_gate(sources)


def _show_gates(hr: Headrace, statement: st.ShowGates, script: str) -> Any:
    return hr.gates()


def _declare_key(hr: Headrace, statement: st.DeclareKey, script: str) -> Any:
    return hr.declare_key(_text(statement.source), statement.columns, check=statement.check)


def _drop_key(hr: Headrace, statement: st.DropKey, script: str) -> Any:
    hr.drop_key(_text(statement.source), statement.columns)


def _show_keys(hr: Headrace, statement: st.ShowKeys, script: str) -> Any:
    return hr.keys()


def _create_watermarks(hr: Headrace, statement: st.CreateWatermarkGroup, script: str) -> Any:
    hr.create_watermark_group(statement.name, [_text(n) for n in statement.sources], statement.tolerance)


def _drop_watermarks(hr: Headrace, statement: st.DropWatermarkGroup, script: str) -> Any:
    hr.drop_watermark_group(statement.name, if_exists=statement.if_exists)


def _advance(hr: Headrace, statement: st.AdvanceWatermark, script: str) -> Any:
    hr.advance_watermark(_text(statement.source), statement.moment)


def _show_watermarks(hr: Headrace, statement: st.ShowWatermarks, script: str) -> Any:
    return hr.watermarks()


def _create_group(hr: Headrace, statement: st.CreateRefreshGroup, script: str) -> Any:
    hr.create_refresh_group(statement.name, [_text(n) for n in statement.members])


def _drop_group(hr: Headrace, statement: st.DropRefreshGroup, script: str) -> Any:
    return hr.drop_refresh_group(statement.name, if_exists=statement.if_exists)


_ACTIONS: dict[type[st.Statement], Callable[[Any, Any, str], Any]] = {
    st.CreateStreamTable: _create,
    st.AlterStreamTable: _alter,
    st.ResolveFuse: _resolve_fuse,
    st.DropStreamTable: _drop,
    st.RefreshStreamTable: _refresh,
    st.RepairStreamTable: _repair,
    st.ExplainStreamTable: _explain,
    st.ShowStreamTables: _show,
    st.ShowCreateStreamTable: _show_create,
    st.CreateGreen: _create_green,
    st.AlterDeployment: _alter_deployment,
    st.EndGreen: _end_green,
    st.ShowDeployments: _show_deployments,
    st.CreateSource: _create_source,
    st.AlterSource: _alter_source,
    st.AlterShard: _alter_shard,
    st.DropSource: _drop_source,
    st.ShowSources: _show_sources,
    st.CreateSink: _create_sink,
    st.AlterSink: _alter_sink,
    st.DropSink: _drop_sink,
    st.VerifySink: _verify_sink,
    st.ShowSinks: _show_sinks,
    st.SetGate: _set_gate,
    st.ShowGates: _show_gates,
    st.DeclareKey: _declare_key,
    st.DropKey: _drop_key,
    st.ShowKeys: _show_keys,
    st.CreateWatermarkGroup: _create_watermarks,
    st.DropWatermarkGroup: _drop_watermarks,
    st.AdvanceWatermark: _advance,
    st.ShowWatermarks: _show_watermarks,
    st.CreateRefreshGroup: _create_group,
    st.DropRefreshGroup: _drop_group,
}
