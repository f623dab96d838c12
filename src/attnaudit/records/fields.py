"""What a JSON file of a run says, field by field; one that is missing or of another kind is named with its file."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from attnaudit.errors import RunFolderError, first_line

_SHOWN = 40


class Fields:
    """Names with values under them, at one `place` of a file that is to be `what`.

    Every question raises a RunFolderError if the file has no answer of that kind: files are written by programs, but
    edited by people.
    """

    def __init__(self, content: Any, file: Path, what: str, place: str = "") -> None:
        self._file, self._what, self._place = file, what, place
        if not isinstance(content, dict):
            raise self.fault(f"{place or 'its content'} is {_short(content)}, not names with values")
        self.content: dict[str, Any] = content

    @staticmethod
    def in_file(file: Path, what: str) -> Fields:
        """All of a file.

        Raises:
            FileNotFoundError: there is none; what that means, the caller knows.
        """
        return Fields(_parsed(file, what), file, what)

    @staticmethod
    def listed_in(file: Path, what: str, place: str) -> list[Fields]:
        """The entries of a file that is a list; `place` is what they are called."""
        return Fields({place: _parsed(file, what)}, file, what).mappings(place)

    def __contains__(self, name: str) -> bool:
        return name in self.content

    def has(self, name: str) -> bool:
        """Whether there is a value, which null is not."""
        return self.content.get(name) is not None

    def is_null(self, name: str) -> bool:
        """Whether null is written there, where something must be."""
        return self._value(name) is None

    def truth(self, name: str) -> bool:
        """True or false."""
        value = self._value(name)
        if not isinstance(value, bool):
            raise self._other(name, "true or false")
        return value

    def text(self, name: str) -> str:
        """A text."""
        value = self._value(name)
        if not isinstance(value, str):
            raise self._other(name, "a text")
        return value

    def whole(self, name: str, least: int) -> int:
        """A whole number of `least` or more."""
        value = self._value(name)
        if not _is_number(value) or not isinstance(value, int) or value < least:
            raise self._other(name, f"a whole number, {least} or more")
        return value

    def number(self, name: str) -> float:
        """A finite number."""
        value = self._value(name)
        if not _is_number(value):
            raise self._other(name, "a finite number")
        return float(value)

    def wholes(self, name: str) -> list[int]:
        """A list of whole numbers."""
        found = self.items(name)
        if not all(isinstance(entry, int) and _is_number(entry) for entry in found):
            raise self._other(name, "a list of whole numbers")
        return found

    def items(self, name: str) -> list[Any]:
        """A list of anything."""
        value = self._value(name)
        if not isinstance(value, list):
            raise self._other(name, "a list")
        return value

    def mapping(self, name: str) -> Fields:
        """The fields under a name."""
        return Fields(self._value(name), self._file, self._what, self._under(name))

    def mappings(self, name: str) -> list[Fields]:
        """The fields of every entry of a list."""
        under = self._under(name)
        return [
            Fields(entry, self._file, self._what, f"{under}[{place}]") for place, entry in enumerate(self.items(name))
        ]

    def fault(self, words: str) -> RunFolderError:
        """The error that says what is wrong with this file."""
        return RunFolderError(f"{self._file} is not readable as {self._what} ({words}): put back what was written.")

    def _value(self, name: str) -> Any:
        if name not in self:
            raise self.fault(f"{self._under(name)} is missing")
        return self.content[name]

    def _other(self, name: str, kind: str) -> RunFolderError:
        return self.fault(f"{self._under(name)} is {_short(self.content[name])}, not {kind}")

    def _under(self, name: str) -> str:
        return f"{self._place}.{name}" if self._place else name


def _parsed(file: Path, what: str) -> Any:
    try:
        return json.loads(file.read_text())
    except FileNotFoundError:
        raise
    except (ValueError, OSError) as error:
        raise RunFolderError(f"{file} is not readable as {what} ({first_line(error)}).") from error


def _is_number(value: Any) -> bool:
    """Finite also as a float: JSON has NaN, and whole numbers of any length."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
