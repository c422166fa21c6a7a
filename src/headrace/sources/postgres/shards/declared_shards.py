"""Compares the shards of a source with those that `headrace.toml` declares."""

from __future__ import annotations

from headrace.sources.nodes.mirror_shapes import NODES
from headrace.sources.postgres.option_names import AVAILABILITY, SAME_KEY, SHARD_COLUMN, SHARDS
from headrace.sources.postgres.shards.shard_options import AVAILABILITIES, COLUMN, SAME_KEYS, has_shards, shards_of
from headrace.sources.source_kind import KeptSource, SourceRequest, differs

DEFAULTS = {SHARD_COLUMN: COLUMN, AVAILABILITY: AVAILABILITIES[0], SAME_KEY: SAME_KEYS[0]}

ANEW = "drop it and declare it anew, or correct the file"
"""Remedy where no command makes a source what is declared."""


def require_same_shards(source: KeptSource, declared: SourceRequest) -> None:
    """Refuse a declaration of other shards than a source has, or of the same captured otherwise.

    Raises:
        UserError: `SOURCE_DIFFERS`, `INVALID_OPTION`.
    """
    options, said = source.options, declared.options
    if not has_shards(options) or SHARDS not in said:
        raise differs(source.name, "whether it has shards", ANEW)
    wanted = shards_of(said[SHARDS])
    if all(shard.name is None for shard in wanted):
        same = sorted(shard.url for shard in wanted) == sorted(of["url"] for of in options[NODES].values())
    else:
        same = {shard.name: shard.url for shard in wanted} == {name: of["url"] for name, of in options[NODES].items()}
    if not same:
        remedy = "add, drop or move them (ALTER SOURCE … ADD SHARD, DROP SHARD, MOVE SHARD), or correct the file"
        raise differs(source.name, "its shards", remedy)
    by_url = {of["url"]: name for name, of in options[NODES].items()}
    for shard in wanted:
        name = by_url[shard.url]
        kept, others = options[NODES][name], [of for other, of in options[NODES].items() if other != name]
        way, failover = shard.capture or said.get("capture") or kept["capture"], bool(said.get("failover"))
        if way != kept["capture"]:
            remedy = _one_anew(source.name, name, way) if others else ANEW
            raise differs(source.name, f"how shard {shard.name or shard.url} is captured", remedy)
        if failover != kept["failover"] and way != "trigger":
            as_others = others and failover == any(of["failover"] for of in others)  # which a shard that is added has
            remedy = _one_anew(source.name, name, way) if as_others else ANEW
            raise differs(source.name, f"failover of shard {shard.name or shard.url}", remedy)
    for option, default in DEFAULTS.items():
        if said.get(option, default) != options[option]:
            raise differs(source.name, option, ANEW)


def _one_anew(source: str, shard: str, way: str) -> str:
    """Say how one shard is copied anew, instead of all of them."""
    again = f"then ADD SHARD '…' AS {shard} CAPTURE {way.upper()}"
    return f"take it out and add it again (ALTER SOURCE {source} DROP SHARD {shard}, {again}), or correct the file"
