"""Blocks of tutorials can be followed, or say why not; and whoever follows them notices what is not so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from kit.tutorial import RUN, TUTORIALS, Typist, blocks_of, missing

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", TUTORIALS)
def test_blocks_can_be_followed_or_say_why_not(page: str) -> None:
    blocks = blocks_of(ROOT / page)
    assert len(blocks) > 5
    for block in blocks:
        assert block.language in (*RUN, "text"), block.place
        assert block.note in ("", "until Ctrl-C") or len(block.note) > len("not run: ") + 5, block.place
        assert block.note in ("", "until Ctrl-C") or block.note.startswith("not run: "), block.place


def test_what_was_not_printed_is_found() -> None:
    printed = "Stream   Mode   Time\n────────\nshop.a   FULL   1.25 s\nshop.b   FULL   3 ms\n"
    assert missing("Stream  Mode  Time\nshop.b  FULL  20 ms\n", printed) is None
    assert missing("shop.a  FULL", printed) is None
    assert missing("shop.a  FU", printed) == "shop.a FU"
    assert missing("shop.a  DIFFERENTIAL  1.25 s", printed) == "shop.a DIFFERENTIAL #"
    assert missing("shop.b  FULL  3 ms  first", "shop.b  FULL  1 min 42 s  first") is None  # on a slow machine
    assert missing("shop.b  FULL  3 ms\nshop.a  FULL  1.25 s", printed) == "shop.a FULL #"


PAGE = """# A page

<!-- not run: it would fail -->
```sh
exit 7
```

```sh
mkdir shop && cd shop
echo "one  two 1.5 s"
```

```text
one two 9 ms
```

```python
import os

print(os.path.basename(os.getcwd()))
```

```text
shop
```

<!-- until Ctrl-C -->
```sh
sleep 60
```
"""


def follow(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("kit.tutorial.SECONDS", 0.3)
    path = folder / "page.md"
    path.write_text(page, encoding="utf-8")
    return Typist(folder, dict(os.environ)).follow(path)


def test_a_page_is_followed_where_the_reader_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert follow(PAGE, tmp_path, monkeypatch) == 3


@pytest.mark.parametrize(
    ("there", "instead", "said"),
    [
        ("one two 9 ms", "one three 9 ms", "page.md:13: 'one three #' not in"),
        ("mkdir shop && cd shop", "false", "page.md:8: exit status 1"),
        ("import os", "import nothing_like_it", "page.md:17: exit status 1"),
        ("sleep 60", "true", "page.md:28: exit status 1"),
    ],
)
def test_a_page_that_is_not_so_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str, instead: str, said: str
) -> None:
    with pytest.raises(AssertionError, match=said.replace("(", r"\(")):
        follow(PAGE.replace(there, instead), tmp_path, monkeypatch)
