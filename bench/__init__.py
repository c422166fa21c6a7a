"""Measurements of Headrace, and the query suites that it is judged with: `python -m bench --help`."""

import sys
from pathlib import Path

# Benches start the servers, and play the histories, that the tests do: `kit` is theirs.
sys.path.append(str(Path(__file__).parents[1] / "tests"))
