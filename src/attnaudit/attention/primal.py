"""Primal-Attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Unpack

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from attnaudit.attention import functional
from attnaudit.attention.base import Attention, AttentionArguments
from attnaudit.errors import UsageError, unknown
from attnaudit.numerics.masks import Mask

_PER, _REDUCTIONS = ("batch", "sample"), ("mean", "sum")


class KernelFactors(NamedTuple):
    """The factors of a layer's kernel K = Φ_q FᵀF Φ_kᵀ: φ of queries and keys, and F = f(X), in float64."""

    query: Float[Tensor, "batch heads tokens dim"]
    key: Float[Tensor, "batch heads tokens dim"]
    rows: Float[Tensor, "batch heads rows dim"]


class PrimalAttention(Attention):
    """Low-rank attention by kernel SVD in primal form (Chen et al. 2023): no values, no softmax, linear in the tokens.

    Per head, e = φ(q) W_e and r = φ(k) W_r; one linear map, shared by the heads, combines both into the output. With
    `data_dependent`, W_e and W_r are f(X)ᵀ times the parameters, where f(X) takes evenly spaced rows of the input.

    Args:
        dim: width of the model.
        num_heads: number of heads.
        rank: s, the number of singular directions; at most the dimension of a head.
        data_dependent: whether the weights depend on the input; impossible in a causal layer, which would see later
        tokens.
        row_factor: f(X) has `rank * row_factor` rows, or `tokens` if that is less.
        tokens: the number of tokens of an input, if known.
        overcomplete: allow a rank above the dimension of a head (published: 96 of 64), which is not low rank.
        arguments: further arguments of timm's `Attention`; `attn_drop` has no effect, as no attention matrix exists.
    """

    not_softmax = "Primal-Attention has no softmax and no values: it projects queries and keys on learned directions"

    def __init__(
        self,
        dim: int,
        num_heads: int = 8,
        *,
        rank: int = 20,
        data_dependent: bool = True,
        row_factor: int = 10,
        tokens: int | None = None,
        overcomplete: bool = False,
        **arguments: Unpack[AttentionArguments],
    ) -> None:
        super().__init__(dim, num_heads, **arguments, projections="qk")
        if rank < 1 or (rank > self.head_dim and not overcomplete):
            raise UsageError(
                f"Primal-Attention's rank must be between 1 and the head dimension {self.head_dim}, got {rank} "
                "(overcomplete=True allows more)."
            )
        if row_factor < 1 or (tokens is not None and tokens < 1):
            raise UsageError(f"row_factor and tokens must be ≥ 1, got row_factor={row_factor} and tokens={tokens}.")
        if data_dependent and dim != self.attn_dim:
            raise UsageError(
                f"Data-dependent Primal-Attention splits its input among the heads, but the input has width {dim} and "
                f"the heads have {self.num_heads} x {self.head_dim}: use data_dependent=False."
            )
        self.rank = rank
        self.data_dependent = data_dependent
        factory: dict[str, Any] = {"device": arguments.get("device"), "dtype": arguments.get("dtype")}
        rows = min(rank * row_factor, tokens or rank * row_factor) if data_dependent else self.head_dim
        self.weight_e = nn.Parameter(torch.empty(num_heads, rows, rank, **factory))
        self.weight_r = nn.Parameter(torch.empty(num_heads, rows, rank, **factory))
        self.root_singular = nn.Parameter(torch.empty(num_heads, rank, **factory))
        self.combine = nn.Linear(2 * rank, self.head_dim, **factory)
        for weight in (self.weight_e, self.weight_r):
            _initialise_orthogonal(weight)  # over all heads at once: each head has Frobenius norm 1
        nn.init.uniform_(self.root_singular)
        self._objective: Tensor | None = None

    def mix(self, parts: Mapping[str, Tensor], x: Tensor, mask: Mask | None, is_causal: bool) -> Tensor:
        """Project queries and keys, store the objective, combine both projections."""
        weights = (self.weight_e, self.weight_r)
        if self.data_dependent:
            if is_causal:
                raise UsageError(
                    "Causal Primal-Attention must not depend on the whole input: use data_dependent=False."
                )
            source = self._source(x)
            weight_e, weight_r = (functional.combined_weight(source, weight, mask=mask) for weight in weights)
        else:
            weight_e, weight_r = weights
        scores = functional.primal(parts["q"], parts["k"], weight_e, weight_r, mask=mask, is_causal=is_causal)
        self._objective = functional.ksvd_objective(scores, self.root_singular.square(), *weights, mask=mask)
        combined: Tensor = self.combine(torch.cat(scores, dim=-1))
        return combined

    def kernel_factors(self, x: Tensor) -> KernelFactors:
        """The kernel of an input, without masks; F is the identity if the weights do not depend on the input.

        For an input with fewer rows than W, the missing rows of F are zero.
        """
        parts = self._projected(x)
        query, key = (F.normalize(parts[letter].double(), dim=-1) for letter in "qk")
        unit = torch.eye(self.weight_e.shape[1], dtype=query.dtype, device=x.device).expand(self.num_heads, -1, -1)
        rows = functional.combined_weight(self._source(x).double(), unit).mT if self.data_dependent else unit
        return KernelFactors(query, key, rows.expand(len(x), -1, -1, -1))

    def _source(self, x: Tensor) -> Tensor:
        """The layer's input, split among the heads."""
        return x.view(*x.shape[:2], self.num_heads, self.head_dim).transpose(1, 2)

    def ksvd_loss(self, per: Literal["batch", "sample"] = "batch") -> Tensor:
        """J² of the last forward pass: the square of J's mean over the batch, or the mean of the squares per sample.

        Published as `batch` for vision and LRA, and as `sample` for time series, language and reinforcement learning.
        """
        if per not in _PER:
            raise unknown("value", per, _PER, about=" of per")
        if self._objective is None:
            raise UsageError("Primal-Attention has no KSVD loss before its first forward pass: call the model first.")
        if self.training and torch.is_grad_enabled() and not self._objective.requires_grad:
            raise UsageError(
                "Primal-Attention's last forward pass has no gradient, as under no_grad or reentrant checkpointing: "
                "use checkpoint(..., use_reentrant=False)."
            )
        heads_mean = self._objective.mean(dim=-1)
        return heads_mean.mean().square() if per == "batch" else heads_mean.square().mean()

    def __getstate__(self) -> dict[str, Any]:
        # The objective belongs to an autograd graph, which cannot be copied or pickled with the module.
        return {**self.__dict__, "_objective": None}


@torch.no_grad()
def _initialise_orthogonal(weight: Tensor) -> None:
    """As torch's, for which a matrix of half precision has no QR decomposition."""
    wide = torch.empty_like(weight, dtype=torch.promote_types(weight.dtype, torch.float32))
    weight.copy_(nn.init.orthogonal_(wide))


def ksvd_loss(
    model: nn.Module, *, per: Literal["batch", "sample"] = "batch", reduction: Literal["mean", "sum"] = "mean"
) -> Tensor:
    """J² of all Primal-Attention layers: their mean (the authors' code) or sum (the paper), to be added to a loss."""
    if reduction not in _REDUCTIONS:
        raise unknown("value", reduction, _REDUCTIONS, about=" of reduction")
    losses = [layer.ksvd_loss(per) for layer in model.modules() if isinstance(layer, PrimalAttention)]
    if not losses:
        raise UsageError(f"{type(model).__name__} has no Primal-Attention layer, and so no KSVD loss.")
    stacked = torch.stack(losses)
    return stacked.mean() if reduction == "mean" else stacked.sum()
