"""The header of a GGUF file: which tensors it holds, and how each is quantised. The numbers themselves are not read."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any

from attnaudit.errors import WeightsError

_MAGIC = b"GGUF"
#: Formats of single values by their number in the file; 8 is text, 9 a list.
_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9
_MOST_AXES = 8


@dataclass(frozen=True)
class GgufTensor:
    """A tensor in a file; `kind` is the number of its format."""

    name: str
    kind: int
    elements: int


@dataclass(frozen=True)
class GgufHeader:
    """The single values of a header by name, such as `general.architecture`, and the tensors of the file."""

    values: Mapping[str, Any]
    tensors: tuple[GgufTensor, ...]

    @property
    def elements(self) -> Counter[int]:
        """How many numbers of the file have each format."""
        found: Counter[int] = Counter()
        for tensor in self.tensors:
            found[tensor.kind] += tensor.elements
        return found


def read_gguf_header(file: Path) -> GgufHeader:
    """The header of a file.

    Raises:
        WeightsError: it is no GGUF file of versions 2 or 3, or it is cut off.
    """
    try:
        with file.open("rb") as stream:
            if stream.read(4) != _MAGIC:
                raise WeightsError(f"{file} is not a GGUF file.")
            version, tensors, values = _unpacked(stream, "IQQ")
            if version not in (2, 3):
                raise WeightsError(f"{file} has version {version} of GGUF, but versions 2 and 3 can be read.")
            found = dict(_value(stream) for _ in range(values))
            return GgufHeader(found, tuple(_tensors(stream, tensors)))
    except OSError as error:
        raise WeightsError(f"{file} cannot be read ({error.strerror}).") from error
    except (struct.error, KeyError, ValueError, OverflowError, MemoryError) as error:
        raise WeightsError(f"{file} is damaged or cut off: its header cannot be read.") from error


def _unpacked(stream: IO[bytes], layout: str) -> tuple[Any, ...]:
    size = struct.calcsize(f"<{layout}")
    return struct.unpack(f"<{layout}", stream.read(size))


def _text(stream: IO[bytes]) -> str:
    (length,) = _unpacked(stream, "Q")
    content = stream.read(length)
    if len(content) < length:
        raise ValueError("cut off")
    return content.decode(errors="replace")


def _value(stream: IO[bytes]) -> tuple[str, Any]:
    """A name with its value; a list is skipped, of which there is only its length."""
    name = _text(stream)
    (kind,) = _unpacked(stream, "I")
    if kind == _TEXT:
        return name, _text(stream)
    if kind != _LIST:
        return name, _unpacked(stream, _FORMATS[kind])[0]
    inner, length = _unpacked(stream, "IQ")
    if inner == _TEXT:
        for _ in range(length):
            _text(stream)
    else:
        stream.seek(length * struct.calcsize(f"<{_FORMATS[inner]}"), 1)
    return name, length


def _tensors(stream: IO[bytes], count: int) -> Iterator[GgufTensor]:
    for _ in range(count):
        name = _text(stream)
        (axes,) = _unpacked(stream, "I")
        if axes > _MOST_AXES:
            raise ValueError("too many axes")
        shape = _unpacked(stream, f"{axes}Q")
        kind, _place = _unpacked(stream, "IQ")
        yield GgufTensor(name, kind, prod(shape))
