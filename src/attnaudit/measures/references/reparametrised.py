"""The same network with other weights: heads in a random gauge, which changes no output.

    Q → QM,    K → KM⁻ᵀ + 1cᵀ,    V → VM_v,    W_O → M_v⁻¹W_O

leave softmax(QKᵀ)VW_O as it is: QM(KM⁻ᵀ + 1cᵀ)ᵀ = QKᵀ + QMc1ᵀ, and softmax ignores what it adds to a row. A statement
about a network must hold in every gauge; a number that moves is one of the gauge. Heads whose logits are capped, or
that have a sink, do not ignore it, and have c = 0. Rotary positions and normalised queries and keys leave fewer of
these M, and no c; that is not looked at, so for such heads these are gauges of the attention, not of its weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.measures.references.base import Reference, Role
from attnaudit.numerics.randomness import numpy_generator

#: Singular values of M and M_v are between 1/STRETCH and STRETCH.
STRETCH = 2.0
#: How many gauges are tried.
GAUGES = 4


@dataclass(frozen=True)
class RandomGauge:
    """M, c and M_v of every head.

    M and M_v are U diag(σ) Wᵀ with random rotations U, W and log σ uniform in ±log 2. Entries of c are N(0, s²) with
    s² = 1/(scale·√d), the size at which scale·c·c' has standard deviation 1: that of keys of ordinary attention.
    """

    keys: Float[Tensor, "heads dim dim"]
    shift: Float[Tensor, "heads dim"]
    values: Float[Tensor, "heads value_dim value_dim"]

    def of_keys(self, keys: Float[Tensor, "heads tokens dim"]) -> Float[Tensor, "heads tokens dim"]:
        """KM⁻ᵀ + 1cᵀ."""
        turned: Tensor = torch.linalg.solve(self.keys, keys.double().mT).mT
        return turned + self.shift[:, None]


def well_conditioned(generator: np.random.Generator, size: int) -> Float[Tensor, "size size"]:
    """U diag(σ) Wᵀ with random rotations U, W and log σ uniform in ±log STRETCH."""
    left, right = (np.linalg.qr(generator.standard_normal((size, size)))[0] for _ in range(2))
    singular = STRETCH ** generator.uniform(-1, 1, size)
    return torch.from_numpy(left * singular @ right.T)


def random_gauge(heads: Heads, seed: int, repeat: int, purpose: str = "reparametrised") -> RandomGauge:
    """One gauge for each layer and head, the same for all inputs; heads that share their keys are one head here."""
    drawn: dict[tuple[int, int], tuple[Tensor, ...]] = {}
    shifts = heads.softcap is None and heads.sink is None
    found = []
    for entry, scale in zip(heads.index, heads.scale.tolist(), strict=True):
        owner = entry.layer, entry.head
        if owner not in drawn:
            generator = numpy_generator(f"{seed}/{repeat}/{purpose}/{owner[0]}/{owner[1]}")
            size = ((abs(scale) or 1.0) * heads.dim**0.5) ** -0.5
            drawn[owner] = (
                well_conditioned(generator, heads.dim),
                torch.from_numpy(generator.standard_normal(heads.dim)) * (size if shifts else 0.0),
                well_conditioned(generator, heads.value.shape[-1]),
            )
        found.append(drawn[owner])
    return RandomGauge(*(torch.stack(part).to(heads.key.device) for part in zip(*found, strict=True)))


def reparametrised(heads: Heads, seed: int, repeat: int) -> Heads:
    """The heads in a random gauge: their attention is the same, their outputs are the old ones times M_v."""
    gauge = random_gauge(heads, seed, repeat)
    return replace(
        heads,
        query=heads.query.double() @ gauge.keys,
        key=gauge.of_keys(heads.key),
        value=heads.value.double() @ gauge.values,
        output=heads.output.double() @ gauge.values,
    )


REPARAMETRISED = Reference(
    "reparametrised",
    "the same network in other gauges, on a sample of inputs",
    Role.SENSITIVITY,
    fitted=True,
)
REPARAMETRISED_NULL = Reference(
    "reparametrised_null",
    "a random projection of the layer's inputs, beside the keys of these gauges",
    Role.SENSITIVITY,
    fitted=True,
)
