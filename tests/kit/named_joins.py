"""Random joins by names: USING and NATURAL, in chains."""

from __future__ import annotations

from hypothesis import strategies as st

from kit.case import Table
from kit.expressions import Field, Scope

_KINDS = ("", "LEFT ", "RIGHT ", "FULL ", "FULL ")


def joined(draw: st.DrawFn, tables: tuple[Table, ...], aliases: tuple[str, ...]) -> tuple[str, Scope]:
    """A source of tables joined by what their columns are called, one for each alias.

    The columns that are joined by are in scope by their bare names, all others with an alias.
    """
    chosen = [draw(st.sampled_from(tables)) for _ in aliases]
    common = [c for c in chosen[0].columns if all(c in table.columns for table in chosen)]
    names = [c.name for c in common]
    # every table begins with an integer of one name
    by = [names[0], *(name for name in names[1:] if draw(st.booleans()))]
    same = {c.name for c in chosen[0].columns}.intersection(*({c.name for c in table.columns} for table in chosen))
    natural = len(chosen) == 2 and same == set(names) and draw(st.booleans())
    by = names if natural else by
    sql = f"{chosen[0].name} AS {aliases[0]}"
    for table, alias in zip(chosen[1:], aliases[1:], strict=True):
        kind = draw(st.sampled_from(_KINDS))
        head, tail = ("NATURAL ", "") if natural else ("", f" USING ({', '.join(by)})")
        sql += f" {head}{kind}JOIN {table.name} AS {alias}{tail}"
    shared = [Field(c.name, c.type.split("(")[0]) for c in common if c.name in by]
    own = [
        Field(f"{alias}.{c.name}", c.type.split("(")[0])
        for table, alias in zip(chosen, aliases, strict=True)
        for c in table.columns
        if c.name not in by
    ]
    return sql, (*shared, *own)
