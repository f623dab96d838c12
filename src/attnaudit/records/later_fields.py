"""Fields of stored types that files of older versions lack."""

from __future__ import annotations

import dataclasses
from typing import Any

_MARK = "added later"


def added_later(default: Any) -> Any:
    """A field that files written before it was added lack: they have the default."""
    return dataclasses.field(default=default, metadata={_MARK: True})


def is_added_later(field: dataclasses.Field[Any]) -> bool:
    """Whether a file may lack the field."""
    return _MARK in field.metadata
