"""The values of another head."""

from __future__ import annotations

from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.measures.references.base import Reference, ReferenceInput, Role
from attnaudit.records.head_id import HeadId


def values(given: ReferenceInput) -> Tensor | None:
    """The values of the next head of the same layer and input, cyclically; of another layer where there is one head."""
    heads = given.heads
    following = following_heads(heads)
    if following is not None:
        return heads.value[following]
    other = given.other_layer
    if other is None or other.value.shape != heads.value.shape:
        return None
    return other.value


def following_heads(heads: Heads) -> list[int] | None:
    """The place of the next head of the same layer and input, cyclically; None where there is one head."""
    groups: dict[HeadId, list[int]] = {}
    for place, entry in enumerate(heads.index):
        groups.setdefault(entry._replace(head=0), []).append(place)
    if any(len(places) < 2 for places in groups.values()):
        return None
    following = {p: places[(k + 1) % len(places)] for places in groups.values() for k, p in enumerate(places)}
    return [following[place] for place in range(len(heads))]


OTHER_HEAD = Reference(
    "other_head",
    "the values of another head of the same layer and input",
    Role.CONTEXT,
    values,
    random=False,
    uses_prediction=False,
)
