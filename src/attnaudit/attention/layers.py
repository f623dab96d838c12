"""Find the attention layers of other libraries' models, by class name, without importing those libraries."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attnaudit.attention.base import Attention, AttentionArguments
from attnaudit.attention.primal import PrimalAttention
from attnaudit.errors import ShapeError, UsageError

#: The qualified names of timm's Attention, current and former.
TIMM = {"timm.layers.attention.Attention", "timm.models.vision_transformer.Attention"}
#: The projections of transformers' self-attention: query, key, value, and output if it is in the same module.
TRANSFORMERS: Mapping[str, tuple[str, str, str, str | None]] = {
    "BertSelfAttention": ("query", "key", "value", None),
    "BertSdpaSelfAttention": ("query", "key", "value", None),
    "ViTSelfAttention": ("query", "key", "value", None),
    "ViTSdpaSelfAttention": ("query", "key", "value", None),
    "ViTAttention": ("q_proj", "k_proj", "v_proj", "o_proj"),
}


class TransformersAttention(nn.Module):
    """A variant with the calling convention of transformers' self-attention."""

    def __init__(self, inner: Attention) -> None:
        super().__init__()
        self.inner = inner

    def forward(
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        head_mask: Tensor | None = None,
        **options: Any,
    ) -> tuple[Tensor, None]:
        """The output, and None instead of attention weights, which are never built."""
        for name in ("past_key_value", "past_key_values", "encoder_hidden_states"):
            if options.get(name) is not None:
                raise UsageError(f"A swapped attention layer works in encoders only: it does not accept {name}.")
        if head_mask is not None or options.get("output_attentions"):
            raise UsageError("A swapped attention layer has no attention weights to mask (head_mask) or return.")
        if attention_mask is not None and isinstance(self.inner, PrimalAttention):
            attention_mask = _one_row(attention_mask)
        return self.inner(hidden_states, attention_mask), None


def _one_row(mask: Tensor) -> Tensor:
    """The padding mask, which transformers repeats for every query, as one row."""
    row = mask[..., :1, :]
    if mask.shape[-2] > 1 and torch.compiler.is_compiling():
        raise ShapeError("Compiled Primal-Attention needs a padding mask with one row, not one per query.")
    if not torch.equal(row.expand_as(mask), mask):
        raise ShapeError("Primal-Attention hides a token from all queries, but the mask differs between queries.")
    return row


@dataclass(frozen=True)
class SwappableLayer:
    """An attention layer that can be replaced, under every name it has in the model.

    `weights` holds (weight, bias) of "q", "k" and "v", each `(heads * dim, width)`; `parts` are modules to copy as is.
    """

    names: tuple[str, ...]
    module: nn.Module
    num_heads: int
    arguments: AttentionArguments
    weights: Mapping[str, tuple[Tensor, Tensor | None]]
    parts: Mapping[str, nn.Module]

    @property
    def width(self) -> int:
        """The dimension of the input tokens."""
        return next(iter(self.weights.values()))[0].shape[1]

    def wrapped(self, new: Attention) -> nn.Module:
        """The new layer, with the calling convention that the model expects."""
        in_transformers = isinstance(self.module, TransformersAttention) or _is_transformers(self.module)
        return TransformersAttention(new) if in_transformers else new

    @property
    def own_parameters(self) -> tuple[str, ...]:
        """The parameters that are specific to a variant, if the layer is already one."""
        layer = self.module.inner if isinstance(self.module, TransformersAttention) else self.module
        return variant_parameters(layer) if isinstance(layer, Attention) else ()


def variant_parameters(layer: Attention) -> tuple[str, ...]:
    """The parameters of a variant that other attention layers do not have."""
    shared = {layer.projections, "q_norm", "k_norm", "norm", "gate", "proj"}
    return tuple(name for name, _ in layer.named_parameters() if name.partition(".")[0] not in shared)


def swappable_layers(model: nn.Module) -> list[SwappableLayer]:
    """All attention layers of a model that can be swapped, in order; a shared layer is listed once."""
    modules: dict[nn.Module, list[str]] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        modules.setdefault(module, []).append(name)
    wrapped = {module.inner for module in modules if isinstance(module, TransformersAttention)}
    layers = (_layer(tuple(names), module) for module, names in modules.items() if module not in wrapped)
    return [layer for layer in layers if layer is not None]


def _layer(names: tuple[str, ...], module: nn.Module) -> SwappableLayer | None:
    if isinstance(module, TransformersAttention):
        return _ours(names, module, module.inner)
    if isinstance(module, Attention):
        return _ours(names, module, module)
    if _class_name(module) in TIMM and hasattr(module, "qkv"):
        return _timm(names, module)
    return _transformers(names, module) if _is_transformers(module) else None


def _class_name(module: nn.Module) -> str:
    return f"{type(module).__module__}.{type(module).__name__}"


def _is_transformers(module: nn.Module) -> bool:
    names = TRANSFORMERS.get(type(module).__name__)
    return type(module).__module__.startswith("transformers.") and names is not None and hasattr(module, names[0])


def _arguments(weight: Tensor, bias: Tensor | None, head_dim: int) -> AttentionArguments:
    return {"attn_head_dim": head_dim, "qkv_bias": bias is not None, "device": weight.device, "dtype": weight.dtype}


def _split(linear: nn.Linear, letters: str) -> dict[str, tuple[Tensor, Tensor | None]]:
    biases = [None] * len(letters) if linear.bias is None else linear.bias.chunk(len(letters))
    return dict(zip(letters, zip(linear.weight.chunk(len(letters)), biases, strict=True), strict=True))


def _copied(module: Any, names: tuple[str, ...]) -> dict[str, nn.Module]:
    found = {name: getattr(module, name, None) for name in names}
    return {name: part for name, part in found.items() if isinstance(part, nn.Module)}


_PARTS = ("q_norm", "k_norm", "norm", "gate", "attn_drop", "proj", "proj_drop")


def _timm(names: tuple[str, ...], module: Any) -> SwappableLayer:
    arguments = _arguments(module.qkv.weight, module.qkv.bias, module.head_dim)
    return SwappableLayer(
        names, module, module.num_heads, arguments, _split(module.qkv, "qkv"), _copied(module, _PARTS)
    )


def _ours(names: tuple[str, ...], module: nn.Module, layer: Attention) -> SwappableLayer:
    linear = layer.projection
    arguments = _arguments(linear.weight, linear.bias, layer.head_dim)
    return SwappableLayer(
        names, module, layer.num_heads, arguments, _split(linear, layer.projections), _copied(layer, _PARTS)
    )


def _transformers(names: tuple[str, ...], module: Any) -> SwappableLayer:
    if getattr(getattr(module, "config", None), "is_decoder", False):
        raise UsageError(f"{names[0]} belongs to a decoder, which caches keys: only encoders can be swapped.")
    *letters, output = TRANSFORMERS[type(module).__name__]
    linears = dict(zip("qkv", (getattr(module, letter) for letter in letters), strict=True))
    weights = {letter: (linear.weight, linear.bias) for letter, linear in linears.items()}
    dropout = getattr(module, "dropout", None)
    rate = dropout.p if isinstance(dropout, nn.Dropout) else module.config.attention_probs_dropout_prob
    # BERT projects the output in the enclosing module.
    project = nn.Identity() if output is None else getattr(module, output)
    parts = {"attn_drop": nn.Dropout(rate), "proj": project}
    heads = module.num_attention_heads
    head_dim = linears["k"].out_features // heads
    return SwappableLayer(names, module, heads, _arguments(*weights["k"], head_dim), weights, parts)


def copy_weights(layer: SwappableLayer, new: Attention) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Copy all weights that fit into the new layer; return which of q, k, v were kept and which were dropped."""
    kept = tuple(letter for letter in new.projections if letter in layer.weights)
    linear = new.projection
    with torch.no_grad():
        for letter, (weight, bias) in _split(linear, new.projections).items():
            if letter in kept:
                old_weight, old_bias = layer.weights[letter]
                weight.copy_(old_weight)
                if bias is not None and old_bias is not None:
                    bias.copy_(old_bias)
        if len(kept) == len(new.projections):  # no new weights: keep requires_grad
            linear.requires_grad_(all(layer.weights[letter][0].requires_grad for letter in kept))
    for name, part in layer.parts.items():
        if hasattr(new, name):
            setattr(new, name, copy.deepcopy(part))
    return kept, tuple(letter for letter in layer.weights if letter not in kept)
