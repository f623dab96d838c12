"""The base of all attention modules: timm's constructor and forward, with input and output projections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypedDict, cast

import torch
from torch import Tensor, nn

from attnaudit.attention.functional.dot_product import Observer
from attnaudit.errors import UsageError
from attnaudit.numerics.masks import Mask


class AttentionArguments(TypedDict, total=False):
    """The arguments of timm's `Attention` after `dim` and `num_heads`."""

    attn_head_dim: int | None
    dim_out: int | None
    qkv_bias: bool
    qk_norm: bool
    scale_norm: bool
    proj_bias: bool
    gated: bool
    attn_drop: float
    proj_drop: float
    norm_layer: type[nn.Module] | None
    device: torch.device | str | None
    dtype: torch.dtype | None


class Attention(nn.Module):
    """Base of the variants: a subclass names its projections and implements `mix`.

    The arguments are those of timm's `Attention`, so that a variant can replace it. The projections are one
    `nn.Linear`, named after its outputs: `qkv` as in timm, `kv` without queries, `qk` without values.
    """

    #: For `attnaudit.capture`: only the last softmax attention of a forward pass determines the output.
    last_call_counts: ClassVar[bool] = True
    #: For `attnaudit.capture`: why a variant has no softmax attention, or None if it has.
    not_softmax: ClassVar[str | None] = None

    def __init__(
        self,
        dim: int,
        num_heads: int = 8,
        attn_head_dim: int | None = None,
        dim_out: int | None = None,
        qkv_bias: bool = False,
        qk_norm: bool = False,
        scale_norm: bool = False,
        proj_bias: bool = True,
        gated: bool = False,
        attn_drop: float = 0.0,
        proj_drop: float = 0.0,
        norm_layer: type[nn.Module] | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        projections: str = "qkv",
    ) -> None:
        super().__init__()
        if num_heads < 1 or (attn_head_dim is None and dim % num_heads) or (attn_head_dim or 1) < 1:
            raise UsageError(f"dim must be a multiple of num_heads, got dim={dim} and num_heads={num_heads}.")
        if (qk_norm or scale_norm) and norm_layer is None:
            raise UsageError("qk_norm and scale_norm need a norm_layer.")
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        self.num_heads = num_heads
        self.head_dim = attn_head_dim or dim // num_heads
        self.attn_dim = num_heads * self.head_dim
        self.projections = projections
        self.observe: Observer | None = None
        self.add_module(projections, nn.Linear(dim, self.attn_dim * len(projections), bias=qkv_bias, **factory))

        def norm(on: bool, width: int) -> nn.Module:
            return norm_layer(width, **factory) if on and norm_layer is not None else nn.Identity()

        if "q" in projections:
            self.q_norm = norm(qk_norm, self.head_dim)
        if "k" in projections:
            self.k_norm = norm(qk_norm, self.head_dim)
        self.attn_drop = nn.Dropout(attn_drop)
        self.norm = norm(scale_norm, self.attn_dim)
        self.gate = nn.Linear(dim, self.attn_dim, bias=qkv_bias, **factory) if gated else None
        self.proj: nn.Module = nn.Linear(self.attn_dim, dim_out or dim, bias=proj_bias, **factory)
        self.proj_drop = nn.Dropout(proj_drop)

    @property
    def projection(self) -> nn.Linear:
        """The linear map to queries, keys and values, in the order of `projections`."""
        return cast(nn.Linear, getattr(self, self.projections))

    @property
    def dropout(self) -> float:
        """The attention dropout in the current mode."""
        return self.attn_drop.p if self.training else 0.0

    def forward(self, x: Tensor, attn_mask: Mask | None = None, is_causal: bool = False) -> Tensor:
        """(batch, tokens, width) to (batch, tokens, width); masks as in `F.scaled_dot_product_attention`."""
        mixed = self.mix(self._projected(x), x, attn_mask, is_causal)
        merged = self.norm(mixed.transpose(1, 2).flatten(2))
        if self.gate is not None:
            merged = merged * self.gate(x).sigmoid()
        projected: Tensor = self.proj_drop(self.proj(merged))
        return projected

    def mix(self, parts: Mapping[str, Tensor], x: Tensor, mask: Mask | None, is_causal: bool) -> Tensor:
        """The variant's formula: `parts` "q", "k", "v", each (batch, heads, tokens, dim), to a tensor of that shape."""
        raise NotImplementedError

    def _projected(self, x: Tensor) -> dict[str, Tensor]:
        heads = self.projection(x).view(*x.shape[:2], len(self.projections), self.num_heads, self.head_dim)
        parts = dict(zip(self.projections, heads.permute(2, 0, 3, 1, 4).unbind(0), strict=True))
        if "q" in parts:
            parts["q"] = self.q_norm(parts["q"])
        if "k" in parts:
            parts["k"] = self.k_norm(parts["k"])
        return parts
