"""Whether the long tests are meant: repetition that `make test` has no time for."""

from __future__ import annotations

import os

LONG = bool(os.environ.get("HEADRACE_TEST_LONG"))
