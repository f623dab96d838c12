"""The library timm: imported when it is needed, and without torch's compiler."""

from __future__ import annotations

from typing import Any

from attnaudit.extras import optional
from attnaudit.extras.deferred_compiler import deferred_compiler


def the_timm() -> Any:
    """timm, or an error that says how to install it."""
    with deferred_compiler():
        return optional("timm", "timm", "A timm model")


def timm_data() -> Any:
    """What timm knows of data sets and of how images are prepared."""
    with deferred_compiler():
        return optional("timm.data", "timm", "Preparing images")


def timm_vision_transformer() -> Any:
    """The file of the vision transformer."""
    with deferred_compiler():
        return optional("timm.models.vision_transformer", "timm", "A vision transformer")
