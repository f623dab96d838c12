"""How sharp a control of the robustness experiment is to be: as its RPC-Attention is after training."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor, nn

from attnaudit.attention import matching_temperatures
from attnaudit.protocol import Protocol
from attnaudit.sources.labelled import training_and_test
from attnaudit.sources.model import load_model, parse_model

#: So many of the training set are looked at.
IMAGES = 512


@cache
def training_images(data: Path) -> list[Image.Image]:
    images = training_and_test(data)[0].first(IMAGES)
    return [images.image(place) for place in range(len(images))]


def network_and_batch(folder: Path, data: Path) -> tuple[nn.Module, Tensor]:
    """A trained network, and the first training images as it reads them."""
    model = load_model(parse_model(str(folder)))
    assert model.preprocess is not None
    prepare = model.preprocess(Protocol.EXACT)
    return model.module, torch.stack([prepare(image) for image in training_images(data)])


def temperature(pursuing: Path, data: Path, device: str) -> float:
    """At which symmetric attention is as sharp as the RPC-Attention of this network; to three digits.

    Nothing else is started meanwhile, so it is computed where that is quick.
    """
    network, batch = network_and_batch(pursuing, data)
    (found,) = matching_temperatures(network.to(device), [batch.to(device)]).values()
    return float(f"{found:.3g}")
