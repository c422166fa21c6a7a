"""Settings of a project: what users set, checked, as one value.

In come `headrace.toml`, environment variables and defaults; out goes `Settings`. Doors: `load`, `default_settings`. A
new setting goes into the module of its section, and into `settings`.
"""

from headrace.config.load import FILE_NAME, load
from headrace.config.project_section import KNOWN, MOST_CONCURRENT, parse_interval, parse_keep_history
from headrace.config.settings import LAYOUT_LIMIT, DeclaredSink, DeclaredSource, Settings, default_settings

__all__ = [
    "FILE_NAME",
    "KNOWN",
    "LAYOUT_LIMIT",
    "MOST_CONCURRENT",
    "DeclaredSink",
    "DeclaredSource",
    "Settings",
    "default_settings",
    "load",
    "parse_interval",
    "parse_keep_history",
]
