"""The attention weights inside a fused kernel, recomputed from its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor


def fused_weights(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Tensor | None:
    """The weights (inputs, heads, queries, keys); None for kernels that do more than attention."""
    if name.startswith("_scaled_dot_product"):
        schema = getattr(torch.ops.aten, name).default._schema
        return _dot_product(dict(zip((own.name for own in schema.arguments), args, strict=False)) | dict(kwargs))
    if name == "_native_multi_head_attention":
        return _multi_head(args, kwargs)
    return None


def _dot_product(call: Mapping[str, Any]) -> Tensor:
    query, key = call["query"].double(), call["key"].double()
    if key.shape[1] != query.shape[1]:
        key = key.repeat_interleave(query.shape[1] // key.shape[1], 1)
    scale = call.get("scale")
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    mask = next((call[name] for name in ("attn_mask", "attn_bias") if call.get(name) is not None), None)
    if mask is not None:
        scores = scores + mask.double()
    if call.get("is_causal", False):
        scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)
    return scores.softmax(-1)


def _multi_head(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Tensor | None:
    """`torch.nn.MultiheadAttention` in evaluation mode, without a mask."""
    query, key, _, width, heads, weight, bias = args[:7]
    if (len(args) > 9 and args[9] is not None) or query.is_nested:
        return None

    def projected(tokens: Tensor, part: slice) -> Tensor:
        return (tokens @ weight[part].mT + bias[part]).double().unflatten(-1, (heads, -1)).transpose(1, 2)

    scores = projected(query, slice(width)) @ projected(key, slice(width, 2 * width)).mT
    return (scores * (width // heads) ** -0.5).softmax(-1)
