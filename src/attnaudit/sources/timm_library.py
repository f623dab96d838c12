"""The library timm: imported when it is needed, and without torch's compiler."""

from __future__ import annotations

from typing import Any

from attnaudit.extras import optional
from attnaudit.sources.deferred_compiler import deferred_compiler


def timm_module(name: str = "timm", purpose: str = "A timm model") -> Any:
    """A module of timm, or an error that says how to install it."""
    with deferred_compiler():
        return optional(name, "timm", purpose)
