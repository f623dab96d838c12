"""Files of CTranslate2 are read variable by variable: these are written byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from torch import Tensor

from attnaudit.errors import WeightsError
from attnaudit.sources.atlas.ctranslate2_weights import read_ctranslate2

KINDS = {torch.float32: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.float16: 4}


def text(words: str) -> bytes:
    return struct.pack("<H", len(words) + 1) + words.encode() + b"\0"


def ctranslate2_file(variables: Mapping[str, Tensor], version: int = 6) -> bytes:
    """A file with these variables and one alias."""
    content = struct.pack("<I", version) + text("WhisperSpec") + struct.pack("<II", 3, len(variables))
    for name, own in variables.items():
        numbers = own.contiguous().numpy().tobytes()
        content += text(name) + struct.pack(f"<B{own.dim()}I", own.dim(), *own.shape)
        content += struct.pack("<BI", KINDS[own.dtype], len(numbers)) + numbers
    return content + struct.pack("<I", 1) + text("alias") + text(next(iter(variables)))


def test_variables_come_back_with_their_shapes_and_kinds(tmp_path: Path) -> None:
    variables = {
        "a/weight": torch.arange(6, dtype=torch.float16).reshape(2, 3),
        "b/bias": torch.tensor([1.5, -2.0]),
        "heads": torch.tensor(6, dtype=torch.int16),
        "flag": torch.tensor(1, dtype=torch.int8),
    }
    (tmp_path / "model.bin").write_bytes(ctranslate2_file(variables))
    found = read_ctranslate2(tmp_path / "model.bin")
    assert list(found) == list(variables)
    for name, own in variables.items():
        assert found[name].dtype == own.dtype
        assert torch.equal(found[name], own)


def test_another_version_and_a_file_that_ends_too_early_are_refused(tmp_path: Path) -> None:
    content = ctranslate2_file({"a": torch.ones(4)})
    for wrong, why in ((ctranslate2_file({"a": torch.ones(4)}, 5), "version 5"), (content[:50], "ends too early")):
        (tmp_path / "model.bin").write_bytes(wrong)
        with pytest.raises(WeightsError, match=why):
            read_ctranslate2(tmp_path / "model.bin")
