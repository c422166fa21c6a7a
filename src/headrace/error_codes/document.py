"""Writes docs/errors.md: `python -m headrace.error_codes.document > docs/errors.md`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from textwrap import fill

from headrace.error_codes.code import ErrorCode
from headrace.error_codes.outages import OUTAGES
from headrace.error_codes.table import SECTIONS, Section

INTRODUCTION = """\
# Errors

Every failure that leaves Headrace carries a message (what happened), often a detail (why) and a hint (what to do), a
stable **code**, and whether the same call **may succeed later without anybody changing anything**. Nothing that is
published changes because of an error.

```python
from headrace import HeadraceError

try:
    hr.refresh()
except HeadraceError as error:
    print(error.code, error.retryable, error.message, error.detail, error.hint)
```

Four classes tell four stories: `UserError` (the input is wrong), `Unsupported` (a correct request that Headrace does
not serve), `EnvironmentFault` (something around Headrace is missing, broken or in the way), `InternalError` (a defect
of Headrace). All are in `headrace.errors`. On the command line any of them ends in exit status 1, wrong usage in 2, an
interrupt in 130; where trying again may help the command says so, and with `--json` the error is one JSON object on
stderr. A failed refresh is kept in [`history`](cli.md#history) with its code.

*Retry*: `yes`, `no`, or `sometimes` where it depends on the cause; the error itself says which. Outages are no fault of
the table that met them, and schedules try again [without limit](scheduling.md#when-something-fails):
{outages}.
"""

HEADER = """\
| Code | What happened | Why | What to do | Retry |
|---|---|---|---|---|"""


def document() -> str:
    """Return the whole of docs/errors.md."""
    families = groupby(SECTIONS, key=lambda section: section.family)
    outages = fill(", ".join(f"`{code}`" for code in sorted(OUTAGES)), 120)
    parts = (part for family, sections in families for part in _family(family, sections))
    return "\n".join([INTRODUCTION.format(outages=outages), *parts])


def _family(name: str, sections: Iterator[Section]) -> Iterator[str]:
    yield f"## {name}\n"
    for section in sections:
        if section.title:
            yield f"### {section.title}\n"
        if section.note:
            yield f"{section.note}\n"
        yield "\n".join([HEADER, *map(_row, section.codes)]) + "\n"


def _row(code: ErrorCode) -> str:
    cells = (code.message, code.cause, code.remedy, code.retry)
    return f"| `{code.code}` | " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    print(document(), end="")
