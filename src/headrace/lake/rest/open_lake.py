"""Opens the lake of a project, where a catalog server keeps it."""

from __future__ import annotations

from headrace.lake.rest.http_api import HttpApi
from headrace.lake.rest.registrar import Registrar
from headrace.lake.rest.rest_lake import RestLake
from headrace.lakes.lake_settings import LakeSettings


def open_lake(settings: LakeSettings) -> RestLake:
    """Return the lake of some settings; nothing is asked yet."""
    return RestLake(HttpApi(settings))


def open_registrar(settings: LakeSettings) -> Registrar:
    """Return what registers tables in the lake of some settings; nothing is asked yet."""
    return Registrar(HttpApi(settings))
