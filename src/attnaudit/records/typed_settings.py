"""Typed settings from plain data, of recipes and of cards, with a sentence for what does not fit."""

from __future__ import annotations

import difflib
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from attnaudit.errors import UsageError

Settings = TypeVar("Settings")


def check_range(
    where: str, low: float, high: float = math.inf, *, open_low: bool = False, **values: float | None
) -> None:
    """Fail, naming the setting, for a value that is not between the bounds; None is no value."""
    for name, value in values.items():
        if value is not None and not (low < value <= high if open_low else low <= value <= high):
            bounds = f"{'above' if open_low else 'at least'} {low:g}" + (
                f" and at most {high:g}" if high < math.inf else ""
            )
            raise UsageError(f"{where}: {name} is {value:g}: it is {bounds}.")


def settings_from(kind: type[Settings], content: Mapping[str, Any], where: str) -> Settings:
    """A dataclass from a mapping, nested ones too; an unknown name, a missing one or another type is an error."""
    if not isinstance(content, Mapping):
        raise UsageError(f"{where} is {content!r}: it has names with values under it.")
    hints = typing.get_type_hints(kind)
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for name in content:
        if name not in known:
            close = difflib.get_close_matches(str(name), known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}."
            raise UsageError(f"{where} has no setting {name!r}: {hint}")
    try:
        return kind(**{name: _fitted(hints[name], value, f"{where}: {name}") for name, value in content.items()})
    except TypeError as error:
        raise UsageError(f"{where} is incomplete ({str(error).partition('() ')[2]}).") from error


def _fitted(hint: Any, value: Any, where: str) -> Any:
    if is_dataclass(hint):
        return settings_from(typing.cast(type, hint), value, where)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        if value is None:
            return None
        return _fitted(next(a for a in arguments if a is not type(None)), value, where)
    if origin is typing.Literal:
        if value not in arguments:
            raise UsageError(f"{where} is {value!r}; there is {', '.join(map(str, arguments))}.")
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise UsageError(f"{where} is {value!r}: it is a list.")
        if Ellipsis not in arguments and len(value) != len(arguments):
            raise UsageError(f"{where} has {len(value)} values: it is a list of {len(arguments)}.")
        return tuple(_fitted(arguments[0], entry, where) for entry in value)
    if origin is not None:
        if not isinstance(value, Mapping):
            raise UsageError(f"{where} is {value!r}: it has names with values under it.")
        return dict(value)
    return _plain(hint, value, where)


def _plain(hint: Any, value: Any, where: str) -> Any:
    if hint is float and isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            number = float(value)  # YAML reads 1e-3, without a point, as text
        except (ValueError, OverflowError):  # no number, or a whole one that no float holds
            number = math.nan
        if math.isfinite(number):
            return number
    elif isinstance(value, hint) and isinstance(value, bool) == (hint is bool):
        return value
    words = {int: "a whole number", float: "a finite number", bool: "true or false", str: "text"}
    raise UsageError(f"{where} is {value!r}: it is {words[hint]}.")
