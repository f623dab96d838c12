"""Keys that the layer would have had with other weights: a random projection of the same inputs.

The null of a theory that predicts values from keys: whatever keys a layer has, they share inputs with its values.
"""

from __future__ import annotations

from dataclasses import replace

from attnaudit.capture.heads import Heads
from attnaudit.measures.references.base import Reference, ReferenceInput, Role
from attnaudit.measures.references.random_projection import projected_inputs


def heads(given: ReferenceInput) -> Heads | None:
    """K = [X 1]W with W ~ N(0, 1), the same for all inputs of a head; None if X is not known."""
    stream = f"{given.seed}/{given.repeat}/random_keys"
    keys = projected_inputs(given.heads, given.heads.key, stream, scaled=False)
    return None if keys is None else replace(given.heads, key=keys)


RANDOM_KEYS = Reference(
    "random_keys",
    "the head's values beside keys that are a random projection of the layer's inputs, for theories fitted to inputs",
    Role.NULL,
    heads=heads,
)
