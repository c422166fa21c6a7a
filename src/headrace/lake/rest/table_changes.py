"""Turns two metadata files of a table into the commit that leads from one to the other.

What was staged is a fork of what the lake shows: the same table (UUID, folder), some snapshots on. Its snapshots, with
the manifests they name, are handed over as they are; no file is written again.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

MAIN = "main"

PUBLICATION = "headrace-publication"
"""Table property: the UUID of the publication that the table shows."""

PUT_BACK = "headrace_put_back_"
"""Tags of this prefix are on tables whose publication was put back: it requires that there is none of its own."""


def requirements(before: Json, publication: str) -> list[Json]:
    """Return what must be true of a table for a publication to move it."""
    return [
        {"type": "assert-table-uuid", "uuid": before["table-uuid"]},
        {"type": "assert-ref-snapshot-id", "ref": MAIN, "snapshot-id": _main(before)},
        {"type": "assert-ref-snapshot-id", "ref": f"{PUT_BACK}{publication}", "snapshot-id": None},
    ]


def updates(before: Json, after: Json, publication: str, *, expire: bool = True) -> list[Json]:
    """Return what makes the one of the other; the UUID of the publication is noted in the table.

    Args:
        before: The table's metadata as it is.
        after: As it is to be.
        publication: The UUID.
        expire: Whether snapshots go that the one has and the other has not.
    """
    found = [*_format(before, after), *_schemas(before, after), *_layouts(before, after)]
    old, new = _snapshots(before), _snapshots(after)
    added = sorted(new.keys() - old.keys(), key=lambda i: (new[i].get("sequence-number", 0), new[i]["timestamp-ms"]))
    found += [{"action": "add-snapshot", "snapshot": new[i]} for i in added]
    found += _refs(before, after)
    if expire and (gone := sorted(old.keys() - new.keys())):
        found.append({"action": "remove-snapshots", "snapshot-ids": gone})
    return [*found, *_properties(before, after, publication)]


def can_follow(before: Json, after: Json) -> bool:
    """Return whether snapshots that the one lacks may still be added to it.

    Iceberg adds none whose number is not beyond the last one, which somebody else may have taken.
    """
    old, new = _snapshots(before), _snapshots(after)
    last = before.get("last-sequence-number", 0)
    return all(new[i].get("sequence-number", 0) > last for i in new.keys() - old.keys())


def put_back(before: Json, publication: str) -> tuple[list[Json], list[Json]]:
    """Return requirements and updates that mark a table against a publication."""
    main = _main(before)
    marked = {
        "action": "set-snapshot-ref",
        "ref-name": f"{PUT_BACK}{publication}",
        "type": "tag",
        "snapshot-id": main,
    }
    return requirements(before, publication), [] if main is None else [marked]


def is_put_back(before: Json, found: Json, publication: str) -> bool:
    """Return whether a table is marked against a publication, and shows what it did before."""
    mark = (found.get("refs") or {}).get(f"{PUT_BACK}{publication}") or {}
    return show_the_same(found, before) and mark.get("snapshot-id") == _main(before)


def show_the_same(one: Json, other: Json) -> bool:
    """Return whether two metadata files are of one table with the same contents."""
    return one["table-uuid"] == other["table-uuid"] and _main(one) == _main(other)


def _main(metadata: Json) -> int | None:
    current = metadata.get("current-snapshot-id")
    return None if current in (None, -1) else int(current)


def _snapshots(metadata: Json) -> dict[int, Json]:
    return {snapshot["snapshot-id"]: snapshot for snapshot in metadata.get("snapshots") or ()}


def _format(before: Json, after: Json) -> list[Json]:
    if before["format-version"] == after["format-version"]:
        return []
    return [{"action": "upgrade-format-version", "format-version": after["format-version"]}]


def _schemas(before: Json, after: Json) -> list[Json]:
    known = {schema["schema-id"] for schema in before.get("schemas") or ()}
    found: list[Json] = [
        {"action": "add-schema", "schema": schema, "last-column-id": after["last-column-id"]}
        for schema in after.get("schemas") or ()
        if schema["schema-id"] not in known
    ]
    if before.get("current-schema-id") != after.get("current-schema-id"):
        found.append({"action": "set-current-schema", "schema-id": after["current-schema-id"]})
    return found


def _layouts(before: Json, after: Json) -> list[Json]:
    """Return changes of partition specs and sort orders."""
    found: list[Json] = []
    for kind, key, number in (("spec", "partition-specs", "spec-id"), ("sort-order", "sort-orders", "order-id")):
        known = {each[number] for each in before.get(key) or ()}
        named = f"add-{kind}"
        found += [{"action": named, kind: each} for each in after.get(key) or () if each[number] not in known]
        default = f"default-{kind}-id"
        if before.get(default) != after.get(default):
            found.append(
                {"action": f"set-default-{kind}", number if kind == "spec" else "sort-order-id": after[default]}
            )
    return found


def _refs(before: Json, after: Json) -> list[Json]:
    old = before.get("refs") or {}
    new = {name: ref for name, ref in (after.get("refs") or {}).items() if not name.startswith(PUT_BACK)}
    found: list[Json] = [
        {"action": "set-snapshot-ref", "ref-name": name, **ref} for name, ref in new.items() if old.get(name) != ref
    ]
    gone = [name for name in old if name not in new]
    return found + [{"action": "remove-snapshot-ref", "ref-name": name} for name in gone]


def _properties(before: Json, after: Json, publication: str) -> list[Json]:
    old, new = before.get("properties") or {}, {**(after.get("properties") or {}), PUBLICATION: publication}
    changed = {name: value for name, value in new.items() if old.get(name) != value}
    gone = [name for name in old if name not in new]
    found: list[Json] = [{"action": "set-properties", "updates": changed}] if changed else []
    return found + ([{"action": "remove-properties", "removals": gone}] if gone else [])
