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


def picture(
    width: float, height: float, label: str, content: Iterable[Markup], class_: str = "", *, whole: bool = True
) -> Markup:
    """Return a picture with a name for those who do not see it.

    Args:
        width: Of it.
        height: Of it.
        label: Its name.
        content: Its elements.
        class_: A class of the style sheet.
        whole: Whether it is one thing; else its parts can be reached, such as links.
    """
    return element(
        "svg",
        content,
        viewBox=f"0 0 {_text(width)} {_text(height)}",
        width=width,
        height=height,
        role="img" if whole else "group",
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
