"""Values that the layer would have had with other weights: a random projection of the same inputs.

A head cannot have any values: V = [X 1]W with one W for all inputs. So this, not noise, is what a head has that knows
nothing of the theory.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.measures.references.base import Reference, ReferenceInput, Role
from attnaudit.theories.planting import same_size, weights_of_heads


def values(given: ReferenceInput) -> Tensor | None:
    """[X 1]W with W ~ N(0, 1), the same for all inputs of a head, scaled to ‖V‖_F; None if X is not known."""
    return projected_inputs(given.heads, given.heads.value, f"{given.seed}/{given.repeat}/random_projection")


def unscaled(given: ReferenceInput) -> Tensor | None:
    """[X 1]W itself: sizes that differ from input to input would not be a projection that all of them share."""
    stream = f"{given.seed}/{given.repeat}/random_projection"
    return projected_inputs(given.heads, given.heads.value, stream, scaled=False)


def projected_inputs(
    heads: Heads, like: Float[Tensor, "heads tokens dim"], stream: str, *, scaled: bool = True
) -> Float[Tensor, "heads tokens dim"] | None:
    """[X 1]W of the shape of values or keys, and of their size in each input; `stream` draws W by layer and head."""
    if heads.source is None:
        return None
    inputs = heads.source.double()
    shape = (inputs.shape[-1] + 1, like.shape[-1])
    weights = weights_of_heads(heads, shape, stream).to(inputs)
    # All heads of a row of inputs in one product, their columns beside each other.
    rows, dim = len(inputs), shape[1]
    beside = weights.view(rows, -1, *shape).transpose(1, 2).flatten(2)
    projected = torch.baddbmm(beside[:, -1:], inputs, beside[:, :-1])
    projected = projected.view(rows, inputs.shape[1], -1, dim).transpose(1, 2).flatten(0, 1)
    return same_size(projected, like) if scaled else projected


RANDOM_PROJECTION = Reference(
    "random_projection",
    "a random projection of the layer's inputs, the same for all inputs",
    Role.NULL,
    values,
    for_fits=unscaled,
    uses_prediction=False,
)
