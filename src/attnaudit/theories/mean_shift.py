"""What a head writes as a step towards where tokens are dense."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.kernel.prediction import Prediction
from attnaudit.kernel.solvers import LARGE
from attnaudit.theories.base import no_prediction
from attnaudit.theories.fitting import FittedTheory, by_row
from attnaudit.theories.inputs_lowrank import NO_INPUTS, inputs_by_row
from attnaudit.theories.linear_fit import TOO_FEW
from attnaudit.theories.recall import LastResult
from attnaudit.theories.regression import RegressionSums

#: Queries count as a linear map of the inputs if it explains this share of their variance.
_LINEAR = 0.99
_OTHER_QUERIES = "its queries are not those of its tokens"
_NOT_LINEAR = "its queries are not a linear map of the layer's inputs, as with rotary positions"


class MeanShift(FittedTheory):
    """The head moves each token up the log-density of all of them: mean shift (Fukunaga & Hostetler 1975).

    With the kernel density p(q) = Σ_j exp(scale·q·k_j) of the keys and q = xW_Q + b,

        ∇_x log p = scale·(PK)W_Qᵀ,    and in the space of values, v = xW_V + b,    step = c·(PK)W_QᵀW_V,  c > 0.

    P is the head's own attention. The theory says that outputs are such steps, up to a constant that is the same for
    all tokens. W_Q and W_V follow from queries, values and inputs of the other half by least squares, the constant c
    does not matter to directions. Outputs that point elsewhere, or down, refute it.
    """

    name = "mean-shift"
    text = "outputs are steps up the density of the tokens (Fukunaga & Hostetler 1975)"
    measures = ("step_cosine",)

    def __init__(self) -> None:
        self._attended = LastResult(_attended_keys)

    def fitting(self) -> _StepFit:
        """Least squares of queries and values on inputs."""
        return _StepFit(self._attended)


class _StepFit:
    """W_Q and W_V, head by head; with grouped queries one W_Q for each head that shares the keys."""

    def __init__(self, attended: LastResult[Tensor]) -> None:
        self._attended = attended
        self._sums = RegressionSums()

    def add(self, heads: Heads) -> None:
        inputs = inputs_by_row(heads)
        if inputs is None or heads.query.shape[1] % heads.tokens:
            return
        self._sums.add(inputs, _targets(heads))

    def finish(self) -> _StepFit:
        self._map = self._sums.solve()
        return self

    def predict(self, heads: Heads) -> Prediction:
        """The steps, as outputs."""
        inputs = inputs_by_row(heads)
        if inputs is None:
            return no_prediction(heads, NO_INPUTS)
        if heads.query.shape[1] % heads.tokens:
            return no_prediction(heads, _OTHER_QUERIES)
        if heads.tokens > LARGE:
            return no_prediction(heads, f"it needs the attention matrix, which is not built above {LARGE:,} tokens")
        if self._map is None:
            return no_prediction(heads, TOO_FEW)
        columns = heads.value.shape[-1]
        queries, found = _targets(heads)[..., :-columns], self._map(inputs)
        left = (queries - found[..., :-columns]).square().sum(dim=(0, 2, 3))
        total = (queries - self._map.y_mean[..., :-columns]).square().sum(dim=(0, 2, 3))
        linear = (left <= (1 - _LINEAR) * total).repeat(len(inputs))
        to_query, to_value = self._map.weights[..., :-columns], self._map.weights[..., -columns:]
        back = to_query.reshape(len(to_query), inputs.shape[-1], -1, heads.dim)
        pulled = torch.einsum("hwgd,hwc->hgdc", back, to_value)
        attended = by_row(self._attended(heads), heads)
        rows, count, _, dim = attended.shape
        steps = attended.reshape(rows, count, -1, heads.tokens, dim) @ pulled
        outputs = steps.flatten(2, 3).flatten(0, 1)
        outputs = outputs * heads.scale.double()[:, None, None]
        problems = tuple(None if fine else _NOT_LINEAR for fine in linear.tolist())
        values = found[..., -columns:].flatten(0, 1)
        lost = ~linear[:, None, None]
        return Prediction(
            values.masked_fill(lost, torch.nan),
            torch.zeros_like(values[:, 0, 0]),
            problems,
            outputs=outputs.masked_fill(lost, torch.nan),
        )


def _attended_keys(heads: Heads) -> Float[Tensor, "heads queries dim"]:
    """PK."""
    return heads.attended(heads.key)


def _targets(heads: Heads) -> Float[Tensor, "rows heads tokens columns"]:
    """Queries and values of each token beside each other; first the queries of all heads that share the keys."""
    queries = by_row(heads.query, heads)
    rows, count, _, dim = queries.shape
    queries = queries.reshape(rows, count, -1, heads.tokens, dim).transpose(2, 3).flatten(3)
    return torch.cat([queries, by_row(heads.value, heads)], dim=-1)
