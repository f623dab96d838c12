"""Values as a smooth function of the keys."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.kernel.prediction import Prediction
from attnaudit.kernel.solvers import LARGE
from attnaudit.theories.base import no_prediction
from attnaudit.theories.fitting import FittedTheory, NothingToFit
from attnaudit.theories.planting import weights_of_heads
from attnaudit.theories.recall import LastResult

_Pairs = Float[Tensor, "heads tokens tokens"]


class KernelRegression(FittedTheory):
    """v = f(k) with f smooth at the scale of the head's own kernel: Nadaraya & Watson (1964), leaving out each token.

        v̂_i = Σ_{j≠i} exp(scale·k_i·k_j) v_j / Σ_{j≠i} exp(scale·k_i·k_j)

    over the tokens that i sees; of a causal head, over earlier ones. Softmax attention with q = k is this estimate with
    i itself (Tsai et al. 2019; Nguyen et al. 2022). It has no parameters: values are predicted from other tokens of the
    same input. Tokens with similar keys and unrelated values refute it. Values are projections of the inputs, and so
    are keys, so any values are somewhat smooth in the keys: a random projection of the inputs, the null, says how much.
    """

    name = "kernel-regression"
    text = "a smooth function of the keys (Nadaraya & Watson 1964, over the head's kernel)"
    context = ("shuffled_tokens",)

    def __init__(self) -> None:
        self._smoother = LastResult(_smoother)

    def fitting(self) -> NothingToFit:
        """Nothing to fit."""
        return NothingToFit(self._left_out)

    def planted(self, heads: Heads, seed: int) -> Heads | None:
        """Smooth values: v_i is the mean of k_jW* over other tokens, weighted by the kernel; outputs stay.

        A random function of the kernel's RKHS would be rougher than that: in so many dimensions, few tokens are near
        enough to predict it, and it scores below the values of networks.
        """
        if heads.tokens > LARGE:
            return None
        weights = weights_of_heads(heads, (heads.dim, heads.value.shape[-1]), f"{seed}/{self.name}")
        smoother, _, alone = self._smoother(heads)
        drawn = heads.key.double() @ weights
        return replace(heads, value=torch.where(alone, drawn, smoother @ drawn))

    def _left_out(self, heads: Heads) -> Prediction:
        """v̂ of every token from the others, beside their plain mean; a token that sees no other has no say."""
        if heads.tokens > LARGE:
            return no_prediction(heads, f"it needs all pairs of tokens, which are not computed above {LARGE:,}")
        values = heads.value.double()
        smoother, mean, alone = self._smoother(heads)
        predicted, baseline = (torch.where(alone, values, own @ values) for own in (smoother, mean))
        nothing = torch.zeros_like(values[:, 0, 0])
        return Prediction(predicted, nothing, (None,) * len(heads), baseline=baseline)


def _smoother(heads: Heads) -> tuple[_Pairs, _Pairs, Bool[Tensor, "#heads tokens 1"]]:
    """The weights of other tokens by the kernel, equal weights, and which tokens see no other."""
    seen = _others(heads)
    keys = heads.key.double()
    logits = (keys @ keys.mT * heads.scale.double()[:, None, None]).masked_fill(~seen, -torch.inf)
    alone = ~seen.any(dim=-1, keepdim=True)
    weights = torch.softmax(logits.masked_fill(alone, 0.0), dim=-1)
    return weights, (seen.double() / seen.sum(dim=-1, keepdim=True).clamp_min(1)).expand_as(weights), alone


def _others(heads: Heads) -> Bool[Tensor, "#heads tokens tokens"]:
    """Which other tokens each token sees."""
    own = torch.eye(heads.tokens, dtype=torch.bool, device=heads.key.device)[None]
    return ~own if heads.seen is None else heads.seen & ~own
