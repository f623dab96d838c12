"""The keys of another head."""

from __future__ import annotations

from dataclasses import replace

from attnaudit.capture.heads import Heads
from attnaudit.measures.references.base import Reference, ReferenceInput, Role
from attnaudit.measures.references.other_head import following_heads


def heads(given: ReferenceInput) -> Heads | None:
    """The keys of the next head of the same layer and input, cyclically; None where there is one head."""
    following = following_heads(given.heads)
    return None if following is None else replace(given.heads, key=given.heads.key[following])


OTHER_KEYS = Reference(
    "other_keys",
    "the head's values beside the keys of another head of the same layer, for theories fitted to inputs",
    Role.CONTEXT,
    random=False,
    heads=heads,
)
