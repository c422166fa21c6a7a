"""A process with a project open, which does what each line of its input says and answers with its seconds.

`python -m bench.connect_session FOLDER`. A line is JSON: `{"sql": …}` runs statements, `{"refresh": …, "full": …}`
refreshes a stream table, `{"collect": …}` fetches the rows of a query.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import headrace
from headrace.api.facade import Headrace


def main(folder: str) -> None:
    """Work until the input ends."""
    start = time.perf_counter()
    with headrace.open(folder) as hr:
        hr.sql("SELECT 1").collect()
        print(json.dumps(time.perf_counter() - start), flush=True)
        for line in sys.stdin:
            start = time.perf_counter()
            _do(hr, json.loads(line))
            print(json.dumps(time.perf_counter() - start), flush=True)


def _do(hr: Headrace, asked: dict[str, Any]) -> None:
    if "sql" in asked:
        hr.sql(asked["sql"])
    elif "collect" in asked:
        hr.sql(asked["collect"]).collect()
    else:
        hr.refresh(asked["refresh"], full=asked.get("full", False))


if __name__ == "__main__":
    main(sys.argv[1])
