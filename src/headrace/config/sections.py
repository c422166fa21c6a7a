"""Sections of `headrace.toml` that hold a few keys each.

Each function returns what its section says, as fields of `Settings`; `CONFIG_INVALID` for what it should not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headrace.addresses import parse_address
from headrace.config.exporter_settings import OPENLINEAGE_KEYS, TRACES_KEYS, read_openlineage, read_traces
from headrace.config.project_section import KNOWN
from headrace.config.settings import LAYOUT_LIMIT
from headrace.errors import UserError
from headrace.lakes.lake_settings import LAKE_KEYS, read_lake
from headrace.lakes.storage_settings import read_storage
from headrace.suggestions import did_you_mean

Section = dict[str, object]

MOST_IDLE_MINUTES = 10_080
"""A week."""


def read_sections(file: Path, sections: Mapping[str, Section], environ: Mapping[str, str]) -> dict[str, Any]:
    """Return what all of them say.

    Args:
        file: The file, for messages.
        sections: Sections that it has, by name.
        environ: The process's environment, which secrets come from.

    Raises:
        UserError: `CONFIG_INVALID`.
    """
    return {
        **_deploy(file, sections.get("deploy", {})),
        **_serve(file, sections.get("serve", {})),
        **_optimizer(file, sections.get("optimizer", {})),
        **_exporters(file, sections.get("openlineage"), sections.get("traces", {})),
        **_lake(file, sections.get("lake")),
        "storage": read_storage(file, sections.get("storage", {}), environ),
    }


def texts(value: object) -> tuple[str, ...] | None:
    """Return a list of texts; None for what is none."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        return None
    return tuple(value)


def _exporters(file: Path, openlineage: Section | None, traces: Section) -> dict[str, Any]:
    _only(file, "openlineage", openlineage or {}, OPENLINEAGE_KEYS)
    _only(file, "traces", traces, TRACES_KEYS)
    return {"openlineage": read_openlineage(file, openlineage), "traces": read_traces(file, traces)}


def _lake(file: Path, section: Section | None) -> dict[str, Any]:
    _only(file, "lake", section or {}, LAKE_KEYS)
    return {"lake": read_lake(file, section)}


def _serve(file: Path, section: Section) -> dict[str, Any]:
    _only(file, "serve", section, ("auto", "idle_minutes", "metrics"))
    auto, idle, metrics = section.get("auto", True), section.get("idle_minutes", 15.0), section.get("metrics", "")
    right = isinstance(idle, (int, float)) and not isinstance(idle, bool) and 0 < idle <= MOST_IDLE_MINUTES
    known = isinstance(auto, bool) and isinstance(metrics, str)
    if not known or not right:
        raise UserError(
            "CONFIG_INVALID",
            f"{file} has something in [serve] that is not understood.",
            hint="It may have auto: whether the first command that needs Spark starts a server, true or false; "
            f"idle_minutes: after how many minutes without work it ends, up to {MOST_IDLE_MINUTES}; and metrics: where "
            'headrace run answers Prometheus, such as "127.0.0.1:9464".',
        )
    return {
        "serve_auto": auto,
        "serve_idle_minutes": float(str(idle)),
        "serve_metrics": parse_address(str(metrics), f"metrics of [serve] in {file}") if metrics else None,
    }


def _deploy(file: Path, section: Section) -> dict[str, Any]:
    _only(file, "deploy", section, ("slots", "layout_limit"))
    slots, limit = section.get("slots", 1), section.get("layout_limit", LAYOUT_LIMIT)
    limit = None if limit == "none" else limit
    numbers = [number for number in (slots, limit) if number is not None]
    if (
        not all(isinstance(number, int) and not isinstance(number, bool) for number in numbers)
        or not (isinstance(slots, int) and slots >= 1)
        or not (limit is None or (isinstance(limit, int) and limit >= 0))
    ):
        raise UserError(
            "CONFIG_INVALID",
            f"{file} has something in [deploy] that is not understood.",
            hint="It may have slots: how many refreshes of deployments may run at once, 1 or more; and layout_limit: "
            'from how many rows on an upgrade loads a stream table beside the running one, or "none".',
        )
    return {"deploy_slots": slots, "layout_limit": limit}


def _optimizer(file: Path, section: Section) -> dict[str, Any]:
    """Return which passes are switched off; their names are checked where passes are loaded."""
    _only(file, "optimizer", section, ("disable",))
    names = texts(section.get("disable", []))
    if names is None:
        raise UserError(
            "CONFIG_INVALID",
            f"[optimizer] in {file} cannot be read.",
            hint='Write disable = ["name", …] with names of passes; `headrace explain --passes` lists them.',
        )
    return {"disabled_passes": tuple(dict.fromkeys(names))}


def _only(file: Path, name: str, section: Mapping[str, object], known: Sequence[str]) -> None:
    """Refuse keys of a section that nothing is known of."""
    if unknown := next((key for key in section if key not in known), None):
        raise UserError(
            "CONFIG_INVALID",
            f"{file} has {unknown} in [{name}], which nothing is known of.",
            hint=f"{did_you_mean(unknown, known)}[{name}] may have {', '.join(known)}."
            + (" Move the line below [headrace]." if unknown in KNOWN else ""),
        )
