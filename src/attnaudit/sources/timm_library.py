"""The library timm: imported when it is needed, and without torch's compiler."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from attnaudit.errors import MissingExtraError
from attnaudit.extras import optional
from attnaudit.extras.deferred_compiler import deferred_compiler


def the_timm() -> Any:
    """timm, or an error that says how to install it."""
    return _imported("timm", "A timm model")


def timm_data() -> Any:
    """What timm knows of data sets and of how images are prepared."""
    return _imported("timm.data", "Preparing images")


def timm_vision_transformer() -> Any:
    """The file of the vision transformer."""
    return _imported("timm.models.vision_transformer", "A vision transformer")


def _imported(module: str, purpose: str) -> ModuleType:
    with deferred_compiler():
        try:
            return optional(module, "timm", purpose)
        except (
            RuntimeError
        ) as error:  # timm imports torchvision, whose CUDA build cannot be imported beside torch for CPU
            if "torchvision" not in str(error):
                raise
            raise MissingExtraError(
                f"{purpose} needs torch and torchvision of the same build, and here they differ ({error}): "
                "install both at once, from the same index."
            ) from error
