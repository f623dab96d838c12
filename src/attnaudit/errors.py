"""Everything attnaudit raises on purpose: one sentence that says what was wrong, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from attnaudit.display import enumerated

#: Longer lists of names are not printed: a reader looks for the closest one.
_LISTED = 30
#: How many names a message suggests.
_SUGGESTED = 3


class AttnAuditError(Exception):
    """Base of every error a user can cause; the command line prints it on one line and exits with `exit_code`."""

    exit_code = 1


class UsageError(AttnAuditError):
    """An argument is invalid, alone or together with another."""

    exit_code = 2


class SettingError(UsageError, ValueError):
    """A value of a typed setting is out of range.

    It is a ValueError too, so that whoever reads settings from a file can add where in the file the value is.
    """


class ModelError(AttnAuditError):
    """A model cannot be found or built."""


class WeightsError(AttnAuditError):
    """A weights file cannot be read safely, or does not fit the model."""


class InputError(AttnAuditError):
    """The images or texts cannot be read or used."""


class ImageError(InputError):
    """An image cannot be decoded; the message is only the reason, to which whoever knows the image adds its name."""


class CaptureError(AttnAuditError):
    """A model's attention cannot be captured as softmax(QKᵀ·scale + bias)V."""


class ShapeError(AttnAuditError):
    """Tensors do not fit together; the message shows their shapes."""


class NumericalError(AttnAuditError):
    """A result contradicts a theorem, so the computation behind it is wrong."""


class RunFolderError(AttnAuditError):
    """A run folder cannot be written, or belongs to another run."""


class WorkerError(AttnAuditError):
    """A worker process died."""


class MissingExtraError(AttnAuditError):
    """An optional dependency is not installed."""


def unknown(kind: str, name: object, known: Iterable[object], listing: str = "", about: str = "") -> UsageError:
    """The error for a name that is not among the `known` ones, with the closest of them.

    All are named if they are few; if they are many, `listing` is the command that lists them. `about` stands
    behind the name, such as the setting under which it is unknown.

    >>> str(unknown("corruption", "fogg", ["fog", "snow"]))
    "Unknown corruption 'fogg': did you mean fog? Known: fog, snow."
    """
    names = [str(each) for each in known]
    close = similar(str(name), names)
    hint = f": did you mean {enumerated(close)}?" if close else "."
    many = f" {listing} lists all." if listing else ""
    listed = f" Known: {', '.join(names) or 'none'}." if len(names) <= _LISTED else many
    return UsageError(f"Unknown {kind} {name!r}{about}{hint}{listed}")


def similar(name: str, known: Iterable[str]) -> list[str]:
    """Up to three of the `known` names that may be meant: the first of the family of that name, or those spelt like it.

    >>> similar("deit-tiny", ["deit_small_patch16_224", "deit_tiny_patch16_224"])
    ['deit_tiny_patch16_224']
    """
    plain = {_plain(each): each for each in known}
    family = [each for each in plain if name and each.startswith(f"{_plain(name)}_")]
    close = family or difflib.get_close_matches(_plain(name), plain, n=_SUGGESTED)
    return [plain[each] for each in close[:_SUGGESTED]]


def _plain(name: str) -> str:
    """A name without what is easily mixed up."""
    return name.lower().replace("-", "_")


def first_line(error: Exception) -> str:
    """The first line of another library's error, to quote in a message."""
    return (str(error).splitlines() or [type(error).__name__])[0]
