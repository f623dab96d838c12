"""The values of another head."""

from __future__ import annotations

from torch import Tensor

from attnaudit.measures.references.base import Reference, ReferenceInput, Role
from attnaudit.records.head_id import HeadId


def values(given: ReferenceInput) -> Tensor | None:
    """The values of the next head of the same layer and input, cyclically; of another layer where there is one head."""
    heads = given.heads
    groups: dict[HeadId, list[int]] = {}
    for place, entry in enumerate(heads.index):
        groups.setdefault(entry._replace(head=0), []).append(place)
    if all(len(places) > 1 for places in groups.values()):
        following = {p: places[(k + 1) % len(places)] for places in groups.values() for k, p in enumerate(places)}
        return heads.value[[following[place] for place in range(len(heads))]]
    other = given.other_layer
    if other is None or other.value.shape != heads.value.shape:
        return None
    return other.value


OTHER_HEAD = Reference(
    "other_head", "the values of another head of the same layer and input", Role.CONTEXT, values, random=False
)
