"""Names of deployments, and of the stream tables that belong to one."""

from __future__ import annotations

import re

from headrace.catalog import Green, Role
from headrace.errors import UserError
from headrace.names import TableName
from headrace.refresh.definition.layout_waits import is_layout_deployment

PREVIOUS = "_previous"
"""Suffix of the namespaces of former generations."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")


def check_deployment(name: str) -> None:
    """Refuse a text that cannot be the name of a user's deployment.

    Raises:
        UserError: `INVALID_NAME`.
    """
    if not _NAME.fullmatch(name) or name.lower().endswith(PREVIOUS) or is_layout_deployment(name.lower()):
        raise UserError(
            "INVALID_NAME",
            f"'{name}' cannot be the name of a deployment.",
            hint=f"Use a letter, then letters, digits and underscores; do not end it in {PREVIOUS}, and leave "
            "layout_NUMBER_… to Headrace.",
        )


def green_name(original: TableName, deployment: str) -> TableName:
    """Return where the green of a stream table is queried before its promotion."""
    *outer, inner = original.namespace
    return TableName(original.catalog, (*outer, f"{inner}__{deployment}"), original.table)


def previous_name(original: TableName, deployment: str) -> TableName:
    """Return where the former generation is queried after it."""
    return green_name(original, deployment + PREVIOUS)


def promoted_name(green: Green) -> TableName:
    """Return what a member of a deployment is called once it is promoted."""
    if green.role is Role.NEW:
        return green.original
    return previous_name(green.original, green.deployment)


def taken_back_name(green: Green) -> TableName:
    """Return what it is called once its promotion was taken back."""
    if green.role is Role.DROP:
        return green.original
    return green_name(green.original, green.deployment)
