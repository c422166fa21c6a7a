"""What becomes of a suite's queries, as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headrace.results.refresh_results import Mode


@dataclass(slots=True)
class Followed:
    """What became of one query.

    Args:
        refusal: Why it is refreshed FULL; empty where it is maintained.
        compiled: Seconds that compiling it took.
        modes: How its refreshes ran.
        rows: Rows of its result after each round.
        changed: Rows that came and went in all rounds.
        seconds: Of its refreshes.
        wrong: Rounds after which it was not what the query returns, and errors.
    """

    refusal: str = ""
    compiled: float = 0.0
    modes: list[Mode] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    changed: int = 0
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)

    @property
    def moving(self) -> bool:
        """Whether it says something: its result has rows, and they change."""
        return bool(self.changed) and max(self.rows, default=0) > 0

    def line(self, name: str) -> str:
        """Return it as a line of the table."""
        ran = "".join({Mode.FULL: "F", Mode.DIFFERENTIAL: "D"}.get(mode, "–") for mode in self.modes)
        rows = f"{min(self.rows)}–{max(self.rows)}" if self.rows else ""
        exact = "**no**" if self.wrong else "yes" if self.rows else ""
        accepted = "no" if self.refusal else "yes"
        told = "; ".join(filter(None, (self.refusal, *self.wrong))).replace("|", "\\|")
        return (
            f"| {name} | {accepted} | {exact} | {rows} | {self.changed} | {ran} | {self.compiled:.2f} "
            f"| {self.seconds:.1f} | {told[:160]} |"
        )


Tell = Callable[[str, Mapping[str, Followed]], None]
"""Is told of what is done, and what was found so far."""

HEAD = (
    "| Query | Accepted | Exact | Rows | Changed rows | Refreshes | Seconds to compile | Seconds of refreshes | |\n"
    "|---|---|---|--:|--:|---|--:|--:|---|"
)


def table(found: Mapping[str, Followed]) -> str:
    """Return the table, and the sums below it."""
    accepted = sum(not each.refusal for each in found.values())
    exact = sum(bool(each.rows) and not each.wrong for each in found.values())
    moving = sum(each.moving for each in found.values())
    lines = [HEAD, *(each.line(name) for name, each in found.items())]
    told = f"{accepted} of {len(found)} accepted, {exact} exact, {moving} with rows that change"
    return "\n".join((*lines, "", told))
