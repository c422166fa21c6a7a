"""No part of `make test`: `make test-browser` finds a browser, or installs it, and names it."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("HEADRACE_CHROMIUM") else ["test_*.py"]
