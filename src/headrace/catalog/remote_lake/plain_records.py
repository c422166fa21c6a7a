"""Writes records as plain JSON values and reads them again, by the types of their fields."""

from __future__ import annotations

import dataclasses
import datetime as dt
import types
import typing
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union

Record = TypeVar("Record")


class UnknownFieldError(Exception):
    """A record was written by another version, which knows more fields, or more values of one."""


def to_plain(value: Any) -> Any:
    """Return a record as JSON values; mappings become lists of pairs, for any keys."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value) if field.init}
    if isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return [[to_plain(key), to_plain(of)] for key, of in value.items()]
    if isinstance(value, (tuple, list, set, frozenset)):
        return {"list": [to_plain(each) for each in value]}
    return value


def from_plain(kind: type[Record], value: Any) -> Record:
    """Return the record of a type that `to_plain` wrote.

    Raises:
        UnknownFieldError: Another version wrote it.
    """
    made: Record = _read(kind, value)
    return made


def _read(kind: Any, value: Any) -> Any:
    origin, given = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        (kind,) = (each for each in given if each is not type(None))
        return _read(kind, value)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = _hints(kind)
        if unknown := value.keys() - hints.keys():
            raise UnknownFieldError(f"{kind.__name__} has no {', '.join(sorted(unknown))}")
        return kind(**{name: _read(hints[name], of) for name, of in value.items()})
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(value)
        except ValueError as error:
            raise UnknownFieldError(str(error)) from error
    if kind is dt.datetime:
        return dt.datetime.fromisoformat(value)
    if origin is tuple:
        return tuple(_read(given[0], each) for each in value["list"])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {_read(given[0], key): _read(given[1], of) for key, of in value}
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return [_read(given[0], each) for each in value["list"]]
    return _untyped(value)


def _untyped(value: Any) -> Any:
    """Return JSON that no type describes: pairs are mappings again, marked lists are lists."""
    if isinstance(value, list):
        return {key: _untyped(of) for key, of in value}
    if isinstance(value, dict):
        return [_untyped(each) for each in value["list"]]
    return value


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)
