"""RPC-Attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from torch import Tensor

from attnaudit.attention import functional
from attnaudit.attention.base import Attention, AttentionArguments
from attnaudit.attention.functional.pursuit import Pursuit
from attnaudit.numerics.masks import Mask


class RPCAttention(Attention):
    """A fixed number of robust-PCA steps on the keys, each with symmetric attention; see `functional.pursue`.

    Args:
        dim: width of the model.
        num_heads: number of heads.
        iterations: attention passes per layer; the paper uses 4 to 6 in the first layer or 2 in every layer.
        lam: λ, the weight of the sparse part.
        preset: `code`, `paper` or `admm`; the next four arguments override its rules.
        threshold: the shrinkage threshold, `lam*mu` or `lam/mu`.
        mu_width: which width enters μ, that of the `model` or of the `head`.
        dual_sign: the sign of the dual term in the step for L.
        sparse: the entries of S: `outliers`, or, as a control, as many at `random` positions, redrawn in every training
            pass and fixed in evaluation.
        asymmetric: keep separate queries (the paper's appendix E.10).
        arguments: further arguments of timm's `Attention`.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int = 8,
        *,
        iterations: int = 4,
        lam: float = 4.0,
        preset: str = "code",
        threshold: str | None = None,
        mu_width: str | None = None,
        dual_sign: int | None = None,
        sparse: str | None = None,
        asymmetric: bool = False,
        **arguments: Unpack[AttentionArguments],
    ) -> None:
        super().__init__(dim, num_heads, **arguments, projections="qkv" if asymmetric else "kv")
        changes = {"threshold": threshold, "mu_width": mu_width, "dual_sign": dual_sign, "sparse": sparse}
        self.rule = Pursuit.preset(preset, iterations=iterations, lam=lam, **changes)

    def mix(self, parts: Mapping[str, Tensor], x: Tensor, mask: Mask | None, is_causal: bool) -> Tensor:
        """Run principal attention pursuit on the keys."""
        return functional.pursue(
            parts["k"],
            parts["v"],
            self.rule,
            query=parts.get("q"),
            mask=mask,
            is_causal=is_causal,
            dropout=self.dropout,
            seed=None if self.training else 0,
            observe=self.observe,
        )

    def extra_repr(self) -> str:
        """The rules of the pursuit."""
        return repr(self.rule)
