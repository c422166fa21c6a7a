"""Reports how a query would be maintained, construct by construct; creates nothing."""

from __future__ import annotations

from headrace.catalog import Catalog
from headrace.compiler.compiled_view import CompiledView
from headrace.compiler.strategies import strategies
from headrace.definitions.compiled_views import CompiledViews
from headrace.definitions.details import Details
from headrace.ports import Session
from headrace.refresh.definition.define import define
from headrace.refresh.definition.early_checks import check_query
from headrace.results.refresh_results import Mode, StrategyInfo, Validation
from headrace.sql.reader.syntax.parser import parse

_CALLED = "is called for changed rows; the table is recomputed when its body changes"


def validate(query: str, *, catalog: Catalog, session: Session, plans: CompiledViews) -> Validation:
    """Say how each construct of a query would be maintained, or what stands in the way.

    Args:
        query: The query.
        catalog: The catalog.
        session: The session; a text that is no query is refused before it is asked for anything.
        plans: Compiles.
    """
    parse(query)
    check_query(query, catalog, session)
    return validation(*define(query, catalog=catalog, session=session, plans=plans))


def validation(details: Details, view: CompiledView | None) -> Validation:
    """Return the answer for an analysed query."""
    lines = strategies(view.tree, view.views) if view is not None and view.tree is not None else ()
    return Validation(
        details.query,
        Mode.DIFFERENTIAL if details.incremental else Mode.FULL,
        None if details.incremental else details.refusals[0].code,
        details.refusals,
        tuple(StrategyInfo(line.construct, line.subject, line.how) for line in lines)
        + tuple(
            StrategyInfo("SUM" if each.of_floats or each.of_integers else "TIES", each.construct, each.how)
            for each in details.refinements
            if not each.of_time
        )
        + tuple(StrategyInfo("PYTHON FUNCTION", f"{name}()", _CALLED) for name in details.functions if lines),
        tuple((column.name, column.type) for column in details.output),
        tuple(str(use.name) for use in details.sources),
    )
