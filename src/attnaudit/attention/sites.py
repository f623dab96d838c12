"""Where the attention of other people's models is, and how to read it: recognised by class name, nothing imported."""

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

#: timm's Attention, where it lived before and lives now.
TIMM = {"timm.layers.attention.Attention", "timm.models.vision_transformer.Attention"}
#: transformers' self-attention: the names of its projections (query, key, value, and the output's where it is inside).
TRANSFORMERS: Mapping[str, tuple[str, str, str, str | None]] = {
    "BertSelfAttention": ("query", "key", "value", None),
    "BertSdpaSelfAttention": ("query", "key", "value", None),
    "ViTSelfAttention": ("query", "key", "value", None),
    "ViTSdpaSelfAttention": ("query", "key", "value", None),
    "ViTAttention": ("q_proj", "k_proj", "v_proj", "o_proj"),
}


class TransformersAttention(nn.Module):
    """A variant in the place of transformers' self-attention, whose calling convention it keeps."""

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
        """The output, and None in the place of attention weights, which are never built."""
        for name in ("past_key_value", "past_key_values", "encoder_hidden_states"):
            if options.get(name) is not None:
                raise UsageError(f"A swapped attention layer is an encoder's: it takes no {name}.")
        if head_mask is not None or options.get("output_attentions"):
            raise UsageError("A swapped attention layer builds no attention weights, to mask by head or to return.")
        if attention_mask is not None and isinstance(self.inner, PrimalAttention):
            attention_mask = _one_row(attention_mask)
        return self.inner(hidden_states, attention_mask), None


def _one_row(mask: Tensor) -> Tensor:
    """Transformers repeats a padding mask for every query; a variant without scores takes it once."""
    row = mask[..., :1, :]
    if mask.shape[-2] > 1 and torch.compiler.is_compiling():
        raise ShapeError("Compiled Primal-Attention cannot check a mask that is repeated for every query.")
    if not torch.equal(row.expand_as(mask), mask):
        raise ShapeError("Primal-Attention can hide a token from all queries or from none, not from some.")
    return row


@dataclass(frozen=True)
class Site:
    """One attention layer that can be replaced, wherever it is used.

    `weights` holds (weight, bias) of "q", "k" and "v", each `(heads * dim, width)`; `parts` what is copied as it is.
    """

    names: tuple[str, ...]
    module: nn.Module
    num_heads: int
    arguments: AttentionArguments
    weights: Mapping[str, tuple[Tensor, Tensor | None]]
    parts: Mapping[str, nn.Module]

    @property
    def width(self) -> int:
        """Width of the tokens that go in."""
        return next(iter(self.weights.values()))[0].shape[1]

    def fitted(self, new: Attention) -> nn.Module:
        """The new layer as the model around it expects to call it."""
        wrapped = isinstance(self.module, TransformersAttention) or _is_transformers(self.module)
        return TransformersAttention(new) if wrapped else new

    @property
    def own_parameters(self) -> tuple[str, ...]:
        """What a variant that stands there has learned besides projections, norms and gate."""
        layer = self.module.inner if isinstance(self.module, TransformersAttention) else self.module
        return variant_parameters(layer) if isinstance(layer, Attention) else ()


def variant_parameters(layer: Attention) -> tuple[str, ...]:
    """The parameters of a variant that no other layer has a place for."""
    shared = {layer.projections, "q_norm", "k_norm", "norm", "gate", "proj"}
    return tuple(name for name, _ in layer.named_parameters() if name.partition(".")[0] not in shared)


def attention_sites(model: nn.Module) -> list[Site]:
    """All layers of a model that can be swapped, in order; one that is used in several places is one."""
    places: dict[nn.Module, list[str]] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        places.setdefault(module, []).append(name)
    wrapped = {module.inner for module in places if isinstance(module, TransformersAttention)}
    sites = (_site(tuple(names), module) for module, names in places.items() if module not in wrapped)
    return [site for site in sites if site is not None]


def _site(names: tuple[str, ...], module: nn.Module) -> Site | None:
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


def _timm(names: tuple[str, ...], module: Any) -> Site:
    arguments = _arguments(module.qkv.weight, module.qkv.bias, module.head_dim)
    return Site(names, module, module.num_heads, arguments, _split(module.qkv, "qkv"), _copied(module, _PARTS))


def _ours(names: tuple[str, ...], module: nn.Module, layer: Attention) -> Site:
    linear = layer.projection
    arguments = _arguments(linear.weight, linear.bias, layer.head_dim)
    return Site(names, module, layer.num_heads, arguments, _split(linear, layer.projections), _copied(layer, _PARTS))


def _transformers(names: tuple[str, ...], module: Any) -> Site:
    if getattr(getattr(module, "config", None), "is_decoder", False):
        raise UsageError(f"{names[0]} is a decoder's attention, with a cache of keys: only encoders can be swapped.")
    *letters, output = TRANSFORMERS[type(module).__name__]
    linears = dict(zip("qkv", (getattr(module, letter) for letter in letters), strict=True))
    weights = {letter: (linear.weight, linear.bias) for letter, linear in linears.items()}
    dropout = getattr(module, "dropout", None)
    rate = dropout.p if isinstance(dropout, nn.Dropout) else module.config.attention_probs_dropout_prob
    # BERT projects the output in the module around this one.
    project = nn.Identity() if output is None else getattr(module, output)
    parts = {"attn_drop": nn.Dropout(rate), "proj": project}
    heads = module.num_attention_heads
    head_dim = linears["k"].out_features // heads
    return Site(names, module, heads, _arguments(*weights["k"], head_dim), weights, parts)


def install(site: Site, new: Attention) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Copy what fits from the site into a new layer: which of q, k, v it kept and which it has no place for."""
    kept = tuple(letter for letter in new.projections if letter in site.weights)
    linear = new.projection
    with torch.no_grad():
        for letter, (weight, bias) in _split(linear, new.projections).items():
            if letter in kept:
                old_weight, old_bias = site.weights[letter]
                weight.copy_(old_weight)
                if bias is not None and old_bias is not None:
                    bias.copy_(old_bias)
        if len(kept) == len(new.projections):  # nothing new in it: as trainable as it was
            linear.requires_grad_(all(site.weights[letter][0].requires_grad for letter in kept))
    for name, part in site.parts.items():
        if hasattr(new, name):
            setattr(new, name, copy.deepcopy(part))
    return kept, tuple(letter for letter in site.weights if letter not in kept)
