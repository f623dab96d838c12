"""Read the arguments of torch's own attention functions."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from attnaudit.capture.attention_call import AttentionCall
from attnaudit.numerics.masks import additive, later_keys


class NotCapturable(Exception):
    """The call is attention, but not of the form softmax(QKᵀ·scale + bias)V; the message says why."""


def scaled_dot_product(args: Sequence[Any], kwargs: Mapping[str, Any], output: Tensor) -> AttentionCall:
    """Record a call of `F.scaled_dot_product_attention`."""
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
    call = dict(zip(names, args, strict=False)) | dict(kwargs)
    query, key, value = call["query"], call["key"], call["value"]
    if call.get("dropout_p", 0.0) > 0.0:
        raise NotCapturable("attention dropout is on")
    if call.get("enable_gqa", False):
        repeats = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(repeats, dim=-3), value.repeat_interleave(repeats, dim=-3)
    bias = call.get("attn_mask")
    if call.get("is_causal", False):
        bias = ~later_keys(query.shape[-2], key.shape[-2], query.device)
    if bias is not None:
        bias = additive(bias, query.dtype).to(query.dtype)
    scale = call.get("scale")
    return AttentionCall(
        query=query,
        key=key,
        value=value,
        output=output,
        scale=1 / math.sqrt(query.shape[-1]) if scale is None else scale,
        bias=bias,
    )


_MULTI_HEAD_SIGNATURE = inspect.signature(F.multi_head_attention_forward)


def multi_head(args: Sequence[Any], kwargs: Mapping[str, Any], result: tuple[Tensor, Tensor | None]) -> AttentionCall:
    """Record `F.multi_head_attention_forward`, which `nn.MultiheadAttention` calls.

    torch does not expose the head outputs, so they are replayed, projected, and compared with the returned tensor; the
    difference is the replay error.
    """
    bound = _MULTI_HEAD_SIGNATURE.bind(*args, **kwargs)
    bound.apply_defaults()
    call = bound.arguments
    if call["training"] and call["dropout_p"] > 0.0:
        raise NotCapturable("attention dropout is on")
    for name in ("bias_k", "bias_v", "static_k", "static_v"):
        if call[name] is not None:
            raise NotCapturable(f"nn.MultiheadAttention with {name} attends to tokens that are not in the sequence")
    if call["add_zero_attn"]:
        raise NotCapturable("nn.MultiheadAttention with add_zero_attn attends to a token that is not in the sequence")
    query, key, value = _projected(call)
    length, batch, width = query.shape
    heads = call["num_heads"]

    def split(tensor: Tensor) -> Tensor:
        return tensor.reshape(tensor.shape[0], batch, heads, -1).permute(1, 2, 0, 3)

    query, key, value = split(query), split(key), split(value)
    bias = _merged_masks(call, batch, heads, query.dtype)
    scale = 1 / math.sqrt(query.shape[-1])
    scores = query @ key.mT * scale
    output = torch.softmax(scores if bias is None else scores + bias, dim=-1) @ value
    merged = output.permute(2, 0, 1, 3).reshape(length * batch, width)
    projected = F.linear(merged, call["out_proj_weight"], call["out_proj_bias"]).view(length, batch, -1)
    returned = result[0] if call["query"].dim() == 3 else result[0].unsqueeze(1)
    error = (projected - returned).abs().amax() / returned.abs().amax().clamp_min(torch.finfo(returned.dtype).tiny)
    return AttentionCall(query, key, value, output, scale, bias, error=error.item())


def _projected(call: Mapping[str, Any]) -> tuple[Tensor, Tensor, Tensor]:
    inputs = [call[name] if call[name].dim() == 3 else call[name].unsqueeze(1) for name in ("query", "key", "value")]
    biases = [None] * 3 if call["in_proj_bias"] is None else call["in_proj_bias"].chunk(3)
    if call["use_separate_proj_weight"]:
        weights = [call[f"{name}_proj_weight"] for name in "qkv"]
    else:
        weights = call["in_proj_weight"].chunk(3)
    query, key, value = (F.linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True))
    return query, key, value


def _merged_masks(call: Mapping[str, Any], batch: int, heads: int, dtype: torch.dtype) -> Tensor | None:
    """Both masks of `nn.MultiheadAttention` as one additive bias; its boolean True means *may not attend*."""
    bias = None
    attention, padding = call["attn_mask"], call["key_padding_mask"]
    if attention is None and call["is_causal"]:
        raise NotCapturable("nn.MultiheadAttention was called with is_causal but without its mask")
    if attention is not None:
        bias = additive(~attention if attention.dtype == torch.bool else attention, dtype).to(dtype)
        bias = bias.view(batch, heads, *bias.shape[-2:]) if bias.dim() == 3 else bias
    if padding is not None:
        padding = padding if padding.dim() == 2 else padding.unsqueeze(0)
        padded = additive(~padding if padding.dtype == torch.bool else padding, dtype).to(dtype)[:, None, None, :]
        bias = padded if bias is None else bias + padded
    return bias
