"""Elements of SVG: attributes and texts are escaped in one place."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup, escape


def element(name: str, content: Iterable[Markup | str] | Markup | str = "", /, **attributes: object) -> Markup:
    """Return an element.

    Args:
        name: Its name.
        content: Text, which is escaped, or elements.
        attributes: Its attributes; `class_` for class, `_` for `-`; one of value None is left out.
    """
    inside = content if isinstance(content, str) else Markup("").join(content)
    given = Markup("").join(
        Markup(' {}="{}"').format(Markup(key.rstrip("_").replace("_", "-")), _text(value))
        for key, value in attributes.items()
        if value is not None
    )
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), given, escape(inside))


def picture(width: float, height: float, label: str, content: Iterable[Markup], class_: str = "") -> Markup:
    """Return a picture with a name for those who do not see it."""
    return element(
        "svg",
        content,
        viewBox=f"0 0 {_text(width)} {_text(height)}",
        width=width,
        height=height,
        role="img",
        aria_label=label,
        class_=f"picture {class_}".strip(),
    )


def group_picture(width: float, height: float, label: str, content: Iterable[Markup], class_: str = "") -> Markup:
    """Return a picture whose parts can be reached, such as links."""
    return element(
        "svg",
        content,
        viewBox=f"0 0 {_text(width)} {_text(height)}",
        width=width,
        height=height,
        role="group",
        aria_label=label,
        class_=f"picture {class_}".strip(),
    )


def _text(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


def shortened(text: str, most: int) -> str:
    """Return a text without its middle where it is too long, as names differ at their ends."""
    if len(text) <= most:
        return text
    head = (most - 1) // 2
    return f"{text[:head]}…{text[-(most - 1 - head) :]}"
