"""Read the operands of torch's fused attention kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnaudit.capture.attention_call import AttentionCall, NotCapturable, Places, ValueSource
from attnaudit.capture.tracing.completion import linear_layer
from attnaudit.capture.tracing.forms import Fact
from attnaudit.capture.tracing.labels import LastingMove, copy, is_same_along
from attnaudit.capture.tracing.layout import Side, input_of, told_apart
from attnaudit.capture.tracing.token_places import token_places
from attnaudit.numerics.masks import additive, later_keys


def is_fused(name: str) -> bool:
    """Whether an operation is one of the kernels behind `F.scaled_dot_product_attention`."""
    return name.startswith("_scaled_dot_product") and not name.endswith("backward")


def fused_attention(
    func: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    output: Tensor,
    fact_of: Callable[[Tensor], Fact | None],
) -> tuple[AttentionCall, Fact]:
    """Read one call of a kernel, and what is known of its output; tensors are (batch, heads, tokens, dim).

    Raises:
        NotCapturable: dropout is on, or tokens belong to several inputs.
    """
    names = [argument.name for argument in func._schema.arguments]
    call = dict(zip(names, args, strict=False)) | dict(kwargs)
    query, key, value = (_side(call[name], fact_of) for name in ("query", "key", "value"))
    if call.get("dropout_p", 0.0) > 0.0:
        raise NotCapturable("attention dropout is on")
    key.check_inputs()
    batch, heads, queries, dim = query.tensor.shape
    tokens, units = key.tensor.shape[2], batch * heads
    scale = call.get("scale")
    scale = (1 / math.sqrt(dim) if scale is None else scale) * query.scale * key.scale
    sample = input_of([_at(side, "sample", heads) for side in (query, key, value)])

    places = Places(sample, _at(query, "column", heads), _at(key, "column", heads), _at(value, "column", heads), heads)
    if query.label("row") is None:
        number = torch.arange(units)
        places = told_apart(places, _at(key, "row", heads), number // heads, number % heads)

    def flat(tensor: Tensor, scale: float = 1.0) -> Tensor:
        copied = copy(_of_heads(tensor, heads, 1)).view(units, *tensor.shape[2:])
        return copied if scale == 1 else copied.div_(scale)

    bias = _bias(call, (batch, heads, queries, tokens), query.tensor)
    return AttentionCall(
        query=flat(query.tensor, query.scale),
        key=flat(key.tensor, key.scale),
        value=flat(value.tensor),
        output=flat(output),
        from_input=any(side.from_input for side in (query, key, value)),
        scale=torch.full((units,), scale, dtype=query.tensor.dtype, device=output.device),
        bias=bias,
        places=places,
        source=_source(value, heads),
        rotated=key.fact is not None and key.fact.rotated,
        precision=query.tensor.dtype,
        tokens=token_places(
            query, key, lambda q: _tokens(q, heads), lambda k: _tokens(k, heads), masked=bias is not None
        ),
    ), _output_fact(query, output)


def _side(tensor: Tensor, fact_of: Callable[[Tensor], Fact | None]) -> Side:
    fact = fact_of(tensor)
    return Side(tensor, fact)


def _of_heads(tensor: Tensor, heads: int, axis: int) -> Tensor:
    """Keys or values, or a label of theirs, once for every head that shares them."""
    return tensor.repeat_interleave(heads // tensor.shape[axis], dim=axis) if tensor.shape[axis] != heads else tensor


def _at(side: Side, name: str, heads: int) -> Tensor | None:
    """A label of the first feature of the first token of every unit."""
    label = side.label(name)
    return None if label is None else _of_heads(label[:, :, 0, 0], heads, 1).reshape(-1)


def _tokens(label: Tensor, heads: int) -> Tensor:
    """A label of the first feature of every token of every unit."""
    return _of_heads(label[..., 0], heads, 1).reshape(-1, label.shape[2])


def _source(value: Side, heads: int) -> ValueSource | None:
    """What a linear layer made the values from; None if they come from anything else."""
    layer, rows = linear_layer(value.fact), value.label("row")
    if layer is None or rows is None:
        return None
    return ValueSource(layer.left[0], _tokens(rows, heads))


def _bias(call: Mapping[str, Any], shape: tuple[int, int, int, int], query: Tensor) -> Tensor | None:
    """Mask and position terms, (units, queries, tokens)."""
    batch, heads, queries, tokens = shape
    bias = next((call[name] for name in ("attn_mask", "attn_bias") if call.get(name) is not None), None)
    if call.get("is_causal", False):
        bias = ~later_keys(queries, tokens, query.device)
    if bias is None:
        return None
    bias = additive(bias, query.dtype)
    bias = bias.expand(shape)
    if is_same_along(bias, (0, 1)):
        return copy(bias[0, 0]).expand(batch * heads, queries, tokens)
    rows = 1 if bias.stride(2) == 0 else queries  # a padding mask is the same for all queries
    return copy(bias[:, :, :rows]).view(batch * heads, rows, tokens).expand(-1, queries, -1)


def _output_fact(query: Side, output: Tensor) -> Fact:
    """Outputs belong to the inputs that the queries belong to; (batch, heads, queries, value_dim)."""
    labels = None if query.fact is None else query.fact.labels
    return Fact(None if labels is None else labels.moved(OtherFeatures(output.shape)))


@dataclass(frozen=True, slots=True)
class OtherFeatures(LastingMove):
    """Labels of tokens for other features of theirs."""

    size: torch.Size

    def __call__(self, label: Tensor) -> Tensor:
        """The label of the first feature for all of them."""
        return label[..., :1].expand(self.size)
