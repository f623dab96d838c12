"""Networks of our own for models that transformers does not have, from the folder of a converted model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import nn

from attnaudit.sources.atlas.entry import BuildModel
from attnaudit.sources.weights import fit_weights, read_weights

CONFIG, WEIGHTS = "config.json", "model.safetensors"


def build_from(make: Callable[[Mapping[str, Any]], nn.Module]) -> BuildModel:
    """How a folder becomes the network that `make` makes of its config.

    Its weights must be exactly those of the network.
    """

    def build(folder: Path, seed: int | None) -> nn.Module:
        network = make(json.loads((folder / CONFIG).read_text("utf-8")))
        if seed is None:
            fit_weights(network, read_weights(folder / WEIGHTS), folder / WEIGHTS, type(network).__name__)
        return network.eval()

    return build
