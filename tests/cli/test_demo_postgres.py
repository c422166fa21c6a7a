"""The second act of the demonstration, as a user runs it: a process of its own, with a server of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from kit.sparks import FOR_FEW_ROWS

CALL = "from headrace.cli.main import main; main()"


def test_a_shop_is_followed_live(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CALL, "demo", "postgres", str(tmp_path / "shop"), "--seconds", "3", "--json"],
        env={**os.environ, **FOR_FEW_ROWS, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    found = json.loads(done.stdout)
    assert found["mirrors_equal"]
    assert len(found["looks"]) >= 2
    assert all(look["agree"] and look["total"] == 1_000_000 for look in found["looks"])
    assert found["looks"][-1]["committed"] > 0
    assert [result["ok"] for result in found["verified"]] == [True] * 5
