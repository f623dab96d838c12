"""Image classifiers in timm's architectures, and how it is shown that they are trained."""

from __future__ import annotations

import json
import re
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

#: Modules inside and outside the layers of a vision transformer in transformers, and in timm.
_INSIDE = {
    "attention.output.dense": "attn.proj",
    "intermediate.dense": "mlp.fc1",
    "output.dense": "mlp.fc2",
    "mlp.fc1": "mlp.fc1",
    "mlp.fc2": "mlp.fc2",
    "layernorm_before": "norm1",
    "layernorm_after": "norm2",
    "norm1": "norm1",
    "norm2": "norm2",
    "layer_scale1": "ls1",
    "layer_scale2": "ls2",
}
_OUTSIDE = {
    "embeddings.cls_token": "cls_token",
    "embeddings.position_embeddings": "pos_embed",
    "embeddings.patch_embeddings.projection": "patch_embed.proj",
    "layernorm": "norm",
}
_KINDS = {"weight": "weight", "bias": "bias", "lambda1": "gamma"}
_PARTS = ("query", "key", "value")

build = build_from(lambda config: the_timm().create_model(config["architecture"]))


def write_network(architecture: str, weights: Mapping[str, Tensor], folder: Path) -> None:
    """Write a network of timm with these weights."""
    (folder / CONFIG).write_text(json.dumps({"architecture": architecture}))
    save_file(dict(weights), folder / WEIGHTS, metadata={"format": "pt"})


def timm_names(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a vision transformer of transformers under timm's names.

    timm keeps queries, keys and values of a layer in one tensor.
    """
    found: dict[str, Tensor] = {}
    for name, own in weights.items():
        layer = re.fullmatch(r"encoder\.layer\.(\d+)\.(.+)\.(weight|bias|lambda1)", name)
        if layer is None:
            module, _, kind = name.rpartition(".")
            found[_OUTSIDE.get(name) or f"{_OUTSIDE[module]}.{kind}"] = own
        elif layer[2] == "attention.attention.query":
            parts = [weights[name.replace("query", part)] for part in _PARTS]
            found[f"blocks.{layer[1]}.attn.qkv.{layer[3]}"] = torch.cat(parts)
        elif not layer[2].startswith("attention.attention."):
            found[f"blocks.{layer[1]}.{_INSIDE[layer[2]]}.{_KINDS[layer[3]]}"] = own
    return found


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
