"""Image classifiers in timm's architectures, and how it is shown that they are trained."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from attnaudit.errors import WeightsError
from attnaudit.protocol import Protocol
from attnaudit.sources.atlas.building import CONFIG, WEIGHTS, build_from
from attnaudit.sources.decoding import decode_image
from attnaudit.sources.images import sample_images
from attnaudit.sources.preprocess import ImagePreparation
from attnaudit.sources.timm_library import the_timm

#: What is on photographs of scikit-image, as numbers of ImageNet's classes: cats, cups of coffee, a tripod.
SHOWN: Mapping[str, tuple[int, ...]] = {
    "chelsea.png": (281, 282, 285),
    "coffee.png": (967, 968, 504),
    "camera.png": (872,),
}

build = build_from(lambda config: the_timm().create_model(config["architecture"]))


def write_network(architecture: str, weights: Mapping[str, Tensor], folder: Path) -> None:
    """Write a network of timm with these weights."""
    (folder / CONFIG).write_text(json.dumps({"architecture": architecture}))
    save_file(dict(weights), folder / WEIGHTS, metadata={"format": "pt"})


def recognises(preparation: ImagePreparation, folder: Path) -> None:
    """Check that the network says what is on three photographs; one of random weights does so once in 10⁸ times.

    Raises:
        WeightsError: it does not.
    """
    network, prepare = build(folder, None).eval(), preparation.preprocess(Protocol.EXACT)
    for photograph in sample_images():
        if photograph.name in SHOWN:
            with torch.no_grad():
                likeliest = int(network(prepare(decode_image(photograph.read_bytes()))[None]).argmax())
            if likeliest not in SHOWN[photograph.name]:
                raise WeightsError(
                    f"It takes {photograph.name} for number {likeliest} of ImageNet's classes, but a trained model for "
                    f"one of {SHOWN[photograph.name]}."
                )
