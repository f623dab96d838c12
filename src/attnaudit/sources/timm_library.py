"""The library timm: imported when it is needed, and without torch's compiler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from attnaudit.errors import MissingExtraError
from attnaudit.extras import optional
from attnaudit.extras.deferred_compiler import deferred_compiler

_MODEL, _IMAGES, _TRANSFORMER = "A timm model", "Preparing images", "A vision transformer"


def the_timm() -> Any:
    """timm, or an error that says how to install it."""
    with _importing(_MODEL):
        return optional("timm", "timm", _MODEL)


def timm_data() -> Any:
    """What timm knows of data sets and of how images are prepared."""
    with _importing(_IMAGES):
        return optional("timm.data", "timm", _IMAGES)


def timm_vision_transformer() -> Any:
    """The file of the vision transformer."""
    with _importing(_TRANSFORMER):
        return optional("timm.models.vision_transformer", "timm", _TRANSFORMER)


@contextmanager
def _importing(purpose: str) -> Iterator[None]:
    """Say what is wrong if torchvision, which timm imports, is built for CUDA, and torch for the CPU."""
    with deferred_compiler():
        try:
            yield
        except RuntimeError as error:
            if "torchvision" not in str(error):
                raise
            raise MissingExtraError(
                f"{purpose} needs torch and torchvision of the same build, and here they differ ({error}): "
                "install both at once, from the same index."
            ) from error
