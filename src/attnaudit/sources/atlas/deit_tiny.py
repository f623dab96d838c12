"""DeiT-Tiny in timm's layout, the model of the study that is measured most often here.

It is timm's `deit_tiny_patch16_224` with the weights of a file that must be at hand, known to the byte, so that the
atlas has the same model everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from attnaudit.sources.atlas.entry import AtlasModel, KnownFile
from attnaudit.sources.atlas.timm_networks import build, recognises, write_network
from attnaudit.sources.preprocess import ImagePreparation
from attnaudit.sources.weights import read_weights

_ARCHITECTURE = "deit_tiny_patch16_224"
_FILE = f"{_ARCHITECTURE}.safetensors"
_PREPARATION = ImagePreparation(224, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225), crop=0.9)


def convert(files: Mapping[str, Path], folder: Path) -> tuple[str, ...]:
    """Write the network."""
    write_network(_ARCHITECTURE, read_weights(files[_FILE]), folder)
    return ("LayerNorm weights rounded to steps of 1/32 to 1/128",)


DEIT_TINY = AtlasModel(
    name="deit-tiny",
    field="vision",
    architecture="DeiT, 12 layers, 3 heads, width 192",
    licence="Apache-2.0",
    megabytes=23,
    files=(KnownFile(_FILE, "b2e17235172c1dcddacb55aa8914e2f8b4b95eb9bb7d7782f333bcbef77151b8"),),
    convert=convert,
    check=partial(recognises, _PREPARATION),
    build=build,
    image=_PREPARATION,
    reads="images",
)
