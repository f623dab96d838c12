"""Fields of stored types that files of older versions lack."""

from __future__ import annotations

import dataclasses
from typing import Any

_MARK, _UNWRITTEN = "added later", "unwritten default"


def added_later(default: Any, *, unwritten: bool = False) -> Any:
    """A field that files written before it was added lack: they have the default.

    An `unwritten` default is left out of new files, too. What does not use the field then has the content, and the
    digests, that it had before: its runs are resumed, and its results are found again.
    """
    return dataclasses.field(default=default, metadata={_MARK: True, _UNWRITTEN: unwritten})


def is_added_later(field: dataclasses.Field[Any]) -> bool:
    """Whether a file may lack the field."""
    return _MARK in field.metadata


def is_unwritten(field: dataclasses.Field[Any], value: Any) -> bool:
    """Whether a value is the default of a field that is written only with another one."""
    return bool(field.metadata.get(_UNWRITTEN)) and value == field.default
