"""The one place where typed content is read from JSON and written to it.

Everything on disk has a frozen dataclass. pydantic checks a file against it, strictly: no name too many or too few, no
text for a number, nothing that is not finite. What does not fit becomes one sentence with the file and the field.
Every file has a digest of its content, so that a value that changed on disk into another valid one is noticed, too.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, from_json

from attnaudit.errors import (
    AttnAuditError,
    NumericalError,
    RunFolderError,
    SettingError,
    UsageError,
    first_line,
    unknown,
)
from attnaudit.numerics.digest import digest
from attnaudit.records.files import write_whole
from attnaudit.records.later_fields import is_added_later, is_unwritten

Content = TypeVar("Content")

#: The field of a file that holds the digest of all others.
DIGEST = "digest"

_CONFIG = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, ser_json_inf_nan="constants")
_SHOWN = 40
_UNKNOWN = "unexpected_keyword_argument"

#: What a value must be, by the type of pydantic's error.
_EXPECTED = {
    "bool_type": "true or false",
    "dataclass_type": "names with values",
    "dict_type": "names with values",
    "finite_number": "a finite number",
    "float_type": "a finite number",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "mapping_type": "names with values",
    "string_type": "text",
    "tuple_type": "a list",
}


def read(kind: type[Content], file: Path, what: str, *, digest_required: bool = True) -> Content:
    """The content of a file, which an error calls `what`.

    Every field must be in the file, those with a default too: a value that is lost must not become another one.

    Args:
        kind: the type of the content.
        file: where it is.
        what: what it is, for an error.
        digest_required: False for a file that may be older than digests; if there is one, it must match all the same.

    Raises:
        FileNotFoundError: there is no such file; only the caller knows what that means.
        RunFolderError: it cannot be read, is not of that kind, or was changed.
    """
    try:
        written = from_json(file.read_bytes())
        found = written.pop(DIGEST, None) if isinstance(written, dict) else None
        content = _validated(kind, json.dumps(written).encode())
        if missing := next(_missing(content, written), None):
            raise SettingError(f"{_path(missing)} is missing")
        _check_digest(found, written, required=digest_required)
        return content
    except FileNotFoundError:
        raise
    except (ValueError, RecursionError, OSError, AttnAuditError) as error:  # pydantic's errors are ValueErrors
        fault = _fault(kind, error)
        raise RunFolderError(f"{file} is not readable as {what} ({fault}): restore the file as it was.") from error


def _check_digest(found: Any, content: Any, *, required: bool) -> None:
    if found is None and required:
        raise SettingError(f"{DIGEST} is missing")
    if found is not None and found != digest(content):
        raise SettingError("its content does not match its digest")


def parse(kind: type[Content], content: Any, where: str) -> Content:
    """Typed content from plain data, such as a YAML file has; an error says `where` it came from.

    Raises:
        UsageError: it is not of that kind.
    """
    try:
        return _validated(kind, json.dumps(content, default=str).encode())
    except (ValueError, TypeError, RecursionError, AttnAuditError) as error:
        fault = _fault(kind, error)
        raise UsageError(f"{where}: {fault}{'' if fault.endswith('?') else '.'}") from error


def write(file: Path, content: Any) -> None:
    """Write typed content, which must have names, as a whole file with its digest.

    Raises:
        RunFolderError: the file cannot be written.
        NumericalError: a number is not finite.
    """
    data = plain(content)
    if infinite := next(_infinite(data), None):
        raise NumericalError(f"{file} cannot be written: {_path(infinite)} is not finite.")
    data = json.loads(json.dumps(data))
    text = json.dumps({**data, DIGEST: digest(data)}, indent=2, ensure_ascii=False)
    write_whole(file, f"{text}\n".encode())


def _infinite(data: Any) -> Iterator[list[int | str]]:
    """Where plain data has a number that JSON cannot hold."""
    if isinstance(data, float) and not math.isfinite(data):
        yield []
    elif isinstance(data, dict | list):
        for place, own in data.items() if isinstance(data, dict) else enumerate(data):
            yield from ([place, *steps] for steps in _infinite(own))


def plain(content: Any) -> Any:
    """Typed content as the plain data that JSON gives back."""
    (found,) = _adapter(typing.cast(Hashable, type(content))).dump_python((content,), mode="json", warnings="none")
    _remove_unwritten(content, found)
    return found


def _remove_unwritten(content: Any, data: Any) -> None:
    """Take the fields out of plain data that are not written with their default."""
    if dataclasses.is_dataclass(content):
        for field in dataclasses.fields(content):
            own = getattr(content, field.name)
            if is_unwritten(field, own):
                del data[field.name]
            else:
                _remove_unwritten(own, data[field.name])
    elif isinstance(content, tuple | list):
        for own, there in zip(content, data, strict=True):
            _remove_unwritten(own, there)
    elif isinstance(content, Mapping):
        for own, there in zip(content.values(), data.values(), strict=True):
            _remove_unwritten(own, there)


@cache
def _adapter(kind: Hashable) -> TypeAdapter[tuple[Any]]:
    """Of a tuple of one: pydantic takes no configuration beside a dataclass itself."""
    return TypeAdapter(typing.cast(Any, tuple)[kind], config=_CONFIG)


def _validated(kind: type[Content], text: bytes) -> Content:
    (found,) = _adapter(typing.cast(Hashable, kind)).validate_json(b"[" + text + b"]")
    return typing.cast(Content, found)


def _missing(content: Any, written: Any) -> Iterator[list[int | str]]:
    """Where the file lacks a field of a dataclass."""
    if dataclasses.is_dataclass(content):
        for field in dataclasses.fields(content):
            if field.name in written:
                deeper = _missing(getattr(content, field.name), written[field.name])
                yield from ([field.name, *steps] for steps in deeper)
            elif not is_added_later(field):
                yield [field.name]
    elif isinstance(content, tuple):
        for place, (own, there) in enumerate(zip(content, written, strict=True)):
            yield from ([place, *steps] for steps in _missing(own, there))
    elif isinstance(content, Mapping):
        for name, own in content.items():
            yield from ([name, *steps] for steps in _missing(own, written[name]))


def _fault(kind: type, error: Exception) -> str:
    """What is wrong, in a few words."""
    if not isinstance(error, ValidationError):
        return first_line(error).removesuffix(".")
    # A name that is not known comes first: it may be why another one is missing.
    first = min(error.errors(include_url=False), key=lambda own: own["type"] != _UNKNOWN)
    if first["type"] == "json_invalid":
        return first["ctx"]["error"]  # type: ignore[no-any-return]
    return _sentence(kind, first)


def _sentence(kind: type, error: ErrorDetails) -> str:
    at, steps = _followed(kind, error["loc"][1:])
    sort, context, place = error["type"], error.get("ctx", {}), _path(steps)
    if sort == _UNKNOWN:
        return f"{_path(steps[:-1], ': ')}{_unknown(str(steps[-1]), at)}"
    if sort == "missing":
        return f"{place} is missing"
    if sort == "value_error":
        return f"{_path(steps, ': ')}{context['error']}".removesuffix(".")
    if sort == "too_long":
        return f"{place} must have {context['max_length']} values, got {context['actual_length']}"
    if sort in ("union_tag_invalid", "union_tag_not_found"):
        place, given = f"{_path(steps, '.')}{context['discriminator'].strip(chr(39))}", context.get("tag")
        return f"{place} is missing" if given is None else _other(place, f"one of {context['expected_tags']}", given)
    expected = _EXPECTED.get(sort)
    if expected is None and "ge" in context:
        expected = f"≥ {context['ge']}"
    elif expected is None:
        expected = f"one of {context['expected']}" if "expected" in context else error["msg"]
    return _other(place or "its content", expected, error["input"])


def _other(place: str, expected: str, given: Any) -> str:
    return f"{place} must be {expected}, got {shortened(given)}"


def _unknown(name: str, kind: Any) -> str:
    words = str(unknown("setting", name, [field.name for field in dataclasses.fields(kind)]))
    return f"{words[0].lower()}{words[1:]}".removesuffix(".")


def _followed(kind: Any, location: Sequence[int | str]) -> tuple[Any, list[int | str]]:
    """The type that holds the last step of a location, and the steps that are in the file: tags of unions are not."""
    steps: list[int | str] = []
    holder = kind
    for step in location:
        holder = kind = _bare(kind)
        if isinstance(kind, tuple):  # a union of dataclasses, of which the step is the tag
            kind = next(own for own in map(_bare, kind) if _is_tag(step, own))
            continue
        steps.append(step)
        if dataclasses.is_dataclass(kind):
            kind = _hints(kind).get(str(step), Any)
        elif arguments := typing.get_args(kind):
            kind = arguments[0] if isinstance(step, int) else arguments[-1]
    return holder, steps


def _is_tag(step: int | str, kind: Any) -> bool:
    """Whether a tag of a union means this member: by its name, or by a literal that one of its fields must be."""
    return step == kind.__name__ or any(step in typing.get_args(hint) for hint in _hints(kind).values())


def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind, include_extras=True)


def _bare(kind: Any) -> Any:
    """A type without annotations and None; the members of what is still a union."""
    while typing.get_origin(kind) is typing.Annotated:
        kind = typing.get_args(kind)[0]
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        members = [own for own in typing.get_args(kind) if own is not type(None)]
        return _bare(members[0]) if len(members) == 1 else tuple(members)
    return kind


def _path(steps: Sequence[int | str], after: str = "") -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")
    return f"{text}{after}" if text else ""


def shortened(value: Any) -> str:
    """A value as JSON has it, short enough for a sentence."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
