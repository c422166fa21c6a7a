"""No part of `make test`: `make test-terminal` finds tmux, or installs it, and names it."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("HEADRACE_TMUX") else ["test_*.py"]
