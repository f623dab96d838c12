"""The weights of a model of CTranslate2: one file of names, shapes and numbers, one after the other.

Version 6 of the format, little-endian: the version, the name and revision of the kind of model, and the number of
variables. Each has its name, its sizes, its kind of numbers and its bytes. At the end there are aliases: names of
variables that are another one. Texts have their length before them and a zero byte behind.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from attnaudit.errors import WeightsError

_VERSION = 6
_NUMBERS = ("<f4", "i1", "<i2", "<i4", "<f2")


def read_ctranslate2(file: Path) -> dict[str, Tensor]:
    """All variables by name, without aliases.

    Raises:
        WeightsError: it is another file, or of another version.
    """
    try:
        return _Reader(file.read_bytes()).variables()
    except (struct.error, ValueError, IndexError) as error:
        raise WeightsError(f"{file} cannot be read as a model of CTranslate2 ({error}).") from error


class _Reader:
    """Reads from the front."""

    def __init__(self, content: bytes) -> None:
        self.content = memoryview(content)
        self.place = 0

    def variables(self) -> dict[str, Tensor]:
        if (version := self.number("I")) != _VERSION:
            raise ValueError(f"it is of version {version}")
        self.text(), self.number("I")  # the kind of model and its revision
        return dict(self.variable() for _ in range(self.number("I")))

    def variable(self) -> tuple[str, Tensor]:
        name, axes = self.text(), self.number("B")
        sizes = [self.number("I") for _ in range(axes)]
        kind = _NUMBERS[self.number("B")]
        numbers = np.frombuffer(self.bytes(self.number("I")), dtype=kind)
        return name, torch.from_numpy(numbers.reshape(sizes).copy())

    def text(self) -> str:
        return str(self.bytes(self.number("H"))[:-1], "utf-8")

    def number(self, kind: str) -> int:
        (found,) = struct.unpack(f"<{kind}", self.bytes(struct.calcsize(f"<{kind}")))
        return int(found)

    def bytes(self, count: int) -> memoryview:
        found = self.content[self.place : self.place + count]
        if len(found) < count:
            raise ValueError("it ends too early")
        self.place += count
        return found
