"""The folder in which dbt finds this adapter's macros."""

import os

PACKAGE_PATH = os.path.dirname(__file__)
