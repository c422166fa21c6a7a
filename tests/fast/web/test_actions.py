"""What buttons begin ends, whatever breaks."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

from headrace.web.actions import Actions


def test_an_action_that_breaks_has_failed(tmp_path: Path) -> None:
    def pause(_: object) -> None:
        raise KeyError("oid")

    actions = Actions(tmp_path, SimpleNamespace(pause=pause))  # type: ignore[arg-type]
    action = actions.begin("pause", "s.b", "somebody")
    assert action is not None
    end = time.monotonic() + 30
    while action.state == "running":
        assert time.monotonic() < end
        time.sleep(0.01)
    assert action.state == "failed"
    assert "oid" in action.message
