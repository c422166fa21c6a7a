"""The demonstration, as a user runs it: compared with plain Spark, followed live, killed, and verified."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from kit.sparks import FOR_COMMANDS

CALL = "from headrace.cli.main import main; main()"


def test_four_tables_are_kept_beside_plain_spark(tmp_path: Path) -> None:
    command = ["demo", str(tmp_path / "tpch"), "--scale", "0.005", "--rounds", "1", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", CALL, *command],
        env={**os.environ, **FOR_COMMANDS, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    found = json.loads(done.stdout)
    assert [len(played["tables"]) for played in found["rounds"]] == [4]
    assert all(table["insert_overwrite_seconds"] > 0 for played in found["rounds"] for table in played["tables"])
    assert len(found["live"]) == 3
    assert found["killed"]["table"].startswith("tpch.")
    assert [result["ok"] for result in found["verified"]] == [True] * 4
