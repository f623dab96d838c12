"""Install the attention variants of a recipe or card in a network of softmax attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from attnaudit.attention import swap
from attnaudit.attention.layers import swappable_layers
from attnaudit.records.architecture import REFERENCE_ATTENTION, AttentionChoice


def install_attention(model: nn.Module, choice: AttentionChoice, tokens: int, *, causal: bool = False) -> None:
    """Swap the variants in, with the arguments that depend on the network's inputs."""
    if choice.attention_layers is not None and choice.other_attention != REFERENCE_ATTENTION:
        depth = len(swappable_layers(model))
        chosen = {layer % depth for layer in choice.attention_layers}
        others = [layer for layer in range(depth) if layer not in chosen]
        swap(model, choice.other_attention, others, **_arguments(choice.other_attention, {}, tokens, causal))
    if choice.attention != REFERENCE_ATTENTION or choice.attention_options:
        options = _arguments(choice.attention, choice.attention_options, tokens, causal)
        swap(model, choice.attention, choice.attention_layers, **options)


def _arguments(attention: str, options: Mapping[str, Any], tokens: int, causal: bool) -> dict[str, Any]:
    """Options, with the number of tokens if parameters depend on it; causal layers must not depend on their input."""
    known: dict[str, Any] = {}
    if attention == "primal" or options.get("form") == "learned":
        known["tokens"] = tokens
    if attention == "primal" and causal:
        known["data_dependent"] = False
    return known | dict(options)
