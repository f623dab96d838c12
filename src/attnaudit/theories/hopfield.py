"""Outputs as what a Hopfield network retrieves."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.kernel.prediction import Prediction
from attnaudit.kernel.solvers import LARGE
from attnaudit.theories.base import no_prediction
from attnaudit.theories.fitting import FittedTheory, by_row, with_new_values
from attnaudit.theories.keys_linear import keys_by_row
from attnaudit.theories.linear_fit import TOO_FEW, LinearFit
from attnaudit.theories.planting import noise_of_heads, weights_of_heads
from attnaudit.theories.recall import LastResult

#: Updates at most, and the step, as a share of the size of the keys, below which a query has arrived.
_UPDATES, _ARRIVED = 30, 1e-3
#: Of planted patterns: scale·‖k‖², so that others with a cosine below .7 have no weight; and the noise of queries.
_SHARPNESS, _NOISE = 30.0, 0.1


class Hopfield(FittedTheory):
    """Ramsauer et al. (2021): keys are stored patterns, a query is a noisy one, and the head retrieves it.

        q ← softmax(scale·qKᵀ + mask)K until it does not move: q*,    V = KW + b,    output = q*W + b

    One update of the network is attention with V = K. So two things refute it: values that are no linear map of the
    keys, and queries that one update does not bring to a fixed point. W and b are fitted to other inputs.
    """

    name = "hopfield"
    text = "outputs are patterns that a Hopfield network retrieves (Ramsauer et al. 2021)"
    measures = ("output_explained_variance",)

    def __init__(self) -> None:
        self._retrieved = LastResult(retrieved)

    def fitting(self) -> _RetrievalFit:
        """Least squares of values on keys."""
        return _RetrievalFit(self._retrieved)

    def planted(self, heads: Heads, seed: int) -> Heads | None:
        """Well separated patterns: the head's own keys, centred and of one length; queries near them; V = KW*."""
        if heads.query.shape[1] % heads.tokens:
            return None
        keys = heads.key.double() - heads.key.double().mean(dim=1, keepdim=True)
        length = (_SHARPNESS / heads.scale.double().abs().clamp_min(1e-12)).sqrt()[:, None, None]
        keys = torch.nn.functional.normalize(keys, dim=-1) * length
        groups = heads.query.shape[1] // heads.tokens
        noise = noise_of_heads(heads, tuple(heads.query.shape[1:]), f"{seed}/{self.name}/queries")
        queries = keys.repeat(1, groups, 1) + _NOISE * length * noise / heads.dim**0.5
        weights = weights_of_heads(heads, (heads.dim, heads.value.shape[-1]), f"{seed}/{self.name}/weights")
        planted = replace(heads, query=queries, key=keys)
        return with_new_values(planted, keys @ weights)


class _RetrievalFit(LinearFit):
    """V = KW + b, and what it makes of retrieved patterns."""

    def __init__(self, retrieved: LastResult[Tensor]) -> None:
        super().__init__(keys_by_row)
        self._retrieved = retrieved
        self._outputs, self._count = torch.zeros(()), 0

    def add(self, heads: Heads) -> None:
        super().add(heads)
        output = by_row(heads.output, heads)
        self._outputs = self._outputs.to(output) + output.sum(dim=(0, 2))
        self._count += output.shape[0] * output.shape[2]

    def predict(self, heads: Heads) -> Prediction:
        if heads.tokens > LARGE:
            return no_prediction(heads, f"it needs all pairs of tokens, which are not computed above {LARGE:,}")
        found = super().predict(heads)
        if self.map is None:
            return no_prediction(heads, TOO_FEW)
        outputs = self.map(by_row(self._retrieved(heads), heads)).flatten(0, 1)
        mean = (self._outputs / self._count)[:, None]
        return replace(found, outputs=outputs, baseline=mean.repeat(len(heads) // len(mean), 1, 1))


def retrieved(heads: Heads) -> Float[Tensor, "heads queries dim"]:
    """The fixed point that each query comes to."""
    exact = heads.to(torch.float32)  # enough for where a query comes to, and twice as fast
    size = exact.key.square().sum(dim=-1).mean(dim=-1).sqrt()[:, None, None]
    found, arrived = exact.query, torch.zeros_like(size, dtype=torch.bool)
    for _ in range(_UPDATES):
        following = replace(exact, query=found, value=exact.key, output=found).replayed()
        step: Tensor = (following - found).abs().amax(dim=(1, 2), keepdim=True)
        found = torch.where(arrived, found, following)  # whatever other heads of the batch still do
        arrived |= step < _ARRIVED * size
        if bool(arrived.all()):
            break
    return found
