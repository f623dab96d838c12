"""The fifteen corruptions of ImageNet-C at five severities: applied to images, or read from a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from attnaudit.errors import InputError
from attnaudit.extras import optional
from attnaudit.numerics.randomness import derived_seed, preserved_random_state
from attnaudit.records.versions import installed_versions

#: Hendrycks & Dietterich (2019): noise, blur, weather, digital.
CORRUPTIONS = (
    "gaussian_noise", "shot_noise", "impulse_noise",
    "defocus_blur", "glass_blur", "motion_blur", "zoom_blur",
    "snow", "frost", "fog", "brightness",
    "contrast", "elastic_transform", "pixelate", "jpeg_compression",
)  # fmt: skip
SEVERITIES = (1, 2, 3, 4, 5)
#: Corruptions that use their own random generator, which takes a seed.
_OWN_SEED = ("impulse_noise", "glass_blur")
_SMALLEST = 32
#: To be increased when the same seed gives a different image.
_VERSION = 1


def corrupted(
    pixels: UInt8[Tensor, "images 3 height width"], name: str, severity: int, numbers: Sequence[int], seed: int
) -> UInt8[Tensor, "images 3 height width"]:
    """The corrupted images; each depends only on seed, corruption, severity and its number.

    The constants are those of ImageNet-C, for 224 pixels: on smaller images a blur of the same radius is stronger, and
    the result is not CIFAR-10-C.
    """
    package = _package()
    check_large_enough(*pixels.shape[2:])
    changed = []
    with preserved_random_state():
        for image, number in zip(pixels.permute(0, 2, 3, 1).cpu().numpy(), numbers, strict=True):
            own = derived_seed(seed, name, severity, number) % 2**32
            np.random.seed(own)
            more = {"seed": own} if name in _OWN_SEED else {}
            changed.append(package.corrupt(image, severity=severity, corruption_name=name, **more))
    return torch.from_numpy(np.stack(changed)).permute(0, 3, 1, 2).contiguous()


def check_large_enough(height: int, width: int) -> None:
    """Check that images of this size can be corrupted.

    Raises:
        InputError: a side is too short.
    """
    if min(height, width) < _SMALLEST:
        raise InputError(f"Images must have ≥ {_SMALLEST} pixels per side to be corrupted, got {width} x {height}.")


def version() -> str:
    """The version of this code and of the package, which must be installed; versions may give different images."""
    _package()
    return f"{_VERSION} by imagecorruptions {installed_versions().get('imagecorruptions-imaug', 'of unknown version')}"


def _package() -> ModuleType:
    return optional("imagecorruptions", "robust", "Corrupting images")


def corrupted_place(folder: Path, name: str, severity: int) -> Path:
    """`<corruption>/<severity>/` (ImageNet-C's layout) or `<corruption>/<severity>.parquet` (ours).

    ImageNet-C is published in archives by group, so a folder such as `noise/` may come between.
    """
    for parent in (folder / name, *sorted(folder.glob(f"*/{name}"))):
        for found in (parent / str(severity), parent / f"{severity}.parquet"):
            if found.exists():
                return found
    raise InputError(
        f"{folder} has neither {name}/{severity}/ nor {name}/{severity}.parquet: give --corrupted ImageNet-C, or add "
        "it with attnaudit corrupt."
    )
