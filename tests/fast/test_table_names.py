"""Names as keys: found again in another process, whose hashes are others."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

from headrace.names import TableName


def test_a_pickled_name_is_found_in_a_process_with_other_hashes() -> None:
    name = TableName("lake", ("a", "b"), "t")
    script = (
        "import pickle, sys; from headrace.names import TableName; "
        "print(pickle.loads(bytes.fromhex(sys.argv[1])) in {TableName('lake', ('a', 'b'), 't')})"
    )
    command = [sys.executable, "-c", script, pickle.dumps(name).hex()]
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
