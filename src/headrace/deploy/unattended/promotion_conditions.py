"""Conditions on which a deployment promotes itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.catalog import Json
from headrace.deploy.promotion_options import PromotionOptions, lowered, parse_promotion_options
from headrace.deploy.unattended.promotion_window import ALWAYS, PromotionWindow, parse_window


@dataclass(frozen=True, slots=True)
class PromotionConditions:
    """The window and the options with which a scheduler promotes a deployment.

    Args:
        window: When it may.
        options: How, with the checks that must pass.
    """

    window: PromotionWindow
    options: PromotionOptions


def parse_conditions(texts: Mapping[str, str]) -> PromotionConditions:
    """Read conditions as users write them.

    Raises:
        UserError: `INVALID_OPTION`, naming key and choices.
    """
    options = parse_promotion_options(texts, "window")
    window = lowered(texts).get("window")
    return PromotionConditions(ALWAYS if window is None else parse_window(window), options)


def conditions_to_json(texts: Mapping[str, str]) -> Json:
    """Return conditions as they are stored: as they were written."""
    return {"with": lowered(texts)}


def texts_of(stored: Json) -> dict[str, str]:
    """Return stored conditions as they were written."""
    return dict(stored["with"])
