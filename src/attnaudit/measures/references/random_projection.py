"""Values that the layer would have had with other weights: a random projection of the same inputs.

A head cannot have any values: V = [X 1]W with one W for all inputs. So this, not noise, is what a head has that knows
nothing of the theory.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.measures.references.base import Reference, ReferenceInput, Role
from attnaudit.numerics.randomness import numpy_generator
from attnaudit.records.head_id import HeadId


def values(given: ReferenceInput) -> Tensor | None:
    """[X 1]W with W ~ N(0, 1), the same for all inputs of a head, scaled to ‖V‖_F; None if X is not known."""
    heads = given.heads
    if heads.source is None:
        return None
    inputs = heads.source.double()
    shape = (inputs.shape[-1] + 1, heads.value.shape[-1])
    drawn = {key: _weights(key, shape, given) for key in dict.fromkeys(map(_of_network, heads.index))}
    weights = torch.stack([drawn[_of_network(entry)] for entry in heads.index]).to(inputs)
    # All heads of a row of inputs in one product, their columns beside each other.
    rows, dim = len(inputs), shape[1]
    beside = weights.view(rows, -1, *shape).transpose(1, 2).flatten(2)
    projected = torch.baddbmm(beside[:, -1:], inputs, beside[:, :-1])
    projected = projected.view(rows, inputs.shape[1], -1, dim).transpose(1, 2).flatten(0, 1)
    sizes: Tensor = torch.linalg.matrix_norm(heads.value.double(), keepdim=True)
    found: Tensor = projected * (sizes / torch.linalg.matrix_norm(projected, keepdim=True))
    return found


def _of_network(entry: HeadId) -> tuple[int, int]:
    """What has weights of its own: neither an input nor a window of one has."""
    return entry.layer, entry.head


def _weights(head: tuple[int, int], shape: tuple[int, int], given: ReferenceInput) -> Float[Tensor, "width dim"]:
    generator = numpy_generator(f"{given.seed}/{given.repeat}/random_projection/{head[0]}/{head[1]}")
    return torch.from_numpy(generator.standard_normal(shape))


RANDOM_PROJECTION = Reference(
    "random_projection", "a random projection of the layer's inputs, the same for all inputs", Role.NULL, values
)
