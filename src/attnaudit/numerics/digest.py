"""Hashes that name data: equal data, equal name, on every machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any


def digest(*parts: Any, size: int = 16) -> str:
    """The BLAKE2b hash of plain data (what JSON can hold), as `2 * size` hexadecimal digits."""
    return content_digest([json.dumps(parts, sort_keys=True).encode()], size)


def content_digest(chunks: Iterable[bytes], size: int = 16) -> str:
    """The same of bytes; how they are divided into chunks makes no difference."""
    state = hashlib.blake2b(digest_size=size)
    for chunk in chunks:
        state.update(chunk)
    return state.hexdigest()
