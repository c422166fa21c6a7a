"""What the site needs beyond MkDocs: pages from the root of the repository, and Markdown as GitHub reads it.

The files of docs/ are read on GitHub as well, so they are written for it. Two things that Python-Markdown reads
otherwise are put right here: a list directly below a paragraph, and `\\|` inside of code in a table.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
ROOT_PAGES = ("ARCHITECTURE.md", "BENCHMARKS.md", "CHANGELOG.md", "CONTRIBUTING.md")

FENCE = re.compile(r"^\s*```")
ITEM = re.compile(r"^(?:- |1\. )")
NO_PARAGRAPH = re.compile(r"^(?:\s|- |\d+\. |#|\||$)")


def on_files(files: Any, *, config: Any) -> Any:
    """Add the pages that lie in the root of the repository."""
    for name in ROOT_PAGES:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Return a page with links and lists as MkDocs expects them."""
    if page.file.src_uri in ROOT_PAGES:
        text = markdown.replace("](docs/", "](")
    else:  # what lies above docs/ lies beside its pages here
        text = re.sub(rf"\]\(\.\./((?:\.\./)*(?:{'|'.join(map(re.escape, ROOT_PAGES))}))", r"](\1", markdown)
    return as_github_reads(text)


def as_github_reads(text: str) -> str:
    """Return Markdown that Python-Markdown renders as GitHub renders the given one."""
    lines: list[str] = []
    inside = False
    for line in text.split("\n"):
        if FENCE.match(line):
            inside = not inside
        elif not inside:
            if ITEM.match(line) and lines and not NO_PARAGRAPH.match(lines[-1]):
                lines.append("")
            if line.startswith("|"):
                line = re.sub(r"`[^`]*`", lambda code: code[0].replace(r"\|", "|"), line)
        lines.append(line)
    return "\n".join(lines)
