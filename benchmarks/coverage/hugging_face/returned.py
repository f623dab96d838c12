"""The attention weights that a model of transformers returns itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn


def returned_attention(model: nn.Module, inputs: Mapping[str, Any]) -> list[Tensor]:
    """Its `output_attentions`, (inputs, heads, queries, keys) each; none if the model does not know the option."""
    try:
        with torch.no_grad():
            output = model(**inputs, output_attentions=True)
    except Exception:  # the option is not there, or its shapes are not ready for it
        return []
    return [tensor for tensor in _attention(output, "") if tensor.dim() == 4 and tensor.is_floating_point()]


def _attention(value: Any, name: str) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        if "attentions" in name:
            yield value
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            yield from _attention(entry, str(key))
    elif isinstance(value, (list, tuple)):
        for entry in value:
            yield from _attention(entry, name)
