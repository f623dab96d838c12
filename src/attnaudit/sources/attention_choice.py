"""Which attention variant stands in which blocks of a network that we build: the same words for images and text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from torch import nn

from attnaudit.attention import swap
from attnaudit.attention.layers import swappable_layers
from attnaudit.errors import UsageError

_REFERENCE = "softmax"


@dataclass(frozen=True, kw_only=True)
class AttentionChoice:
    """What a recipe or a card says of the attention of a network.

    Args:
        attention: a name of `attnaudit ls attention`.
        attention_layers: which blocks have it; all by default.
        attention_options: further arguments of the variant, such as {"iterations": 4}.
        other_attention: what the other blocks have; RPC-Attention in the first layers of a symmetric network is
            `attention: rpc, attention_layers: [0, 1], other_attention: symmetric`.
    """

    attention: str = _REFERENCE
    attention_layers: tuple[int, ...] | None = None
    attention_options: Mapping[str, Any] = field(default_factory=dict)
    other_attention: str = _REFERENCE

    def __post_init__(self) -> None:
        if self.attention_layers is None and self.other_attention != _REFERENCE:
            raise UsageError(
                f"other_attention is {self.other_attention}, but attention_layers leaves no other block: name the "
                f"blocks that have {self.attention} attention, as in [0, 1]."
            )

    @property
    def content(self) -> dict[str, Any]:
        """All numbers as plain data that JSON gives back unchanged; what was added later only where it is used."""
        numbers = asdict(self)
        numbers["attention_layers"] = None if self.attention_layers is None else list(self.attention_layers)
        if self.other_attention == _REFERENCE:
            del numbers["other_attention"]
        return numbers

    def put_into(self, model: nn.Module, tokens: int, *, causal: bool = False) -> None:
        """Swap the variants into a network of softmax attention, telling them what they need to know of its inputs."""
        if self.attention_layers is not None and self.other_attention != _REFERENCE:
            depth = len(swappable_layers(model))
            chosen = {layer % depth for layer in self.attention_layers}
            others = [layer for layer in range(depth) if layer not in chosen]
            swap(model, self.other_attention, others, **_needs(self.other_attention, {}, tokens, causal))
        if self.attention != _REFERENCE:
            options = _needs(self.attention, self.attention_options, tokens, causal)
            swap(model, self.attention, self.attention_layers, **options)


def _needs(attention: str, options: Mapping[str, Any], tokens: int, causal: bool) -> dict[str, Any]:
    """Options with the number of tokens where parameters depend on it; a causal layer cannot depend on its input."""
    known: dict[str, Any] = {}
    if attention == "primal" or options.get("form") == "learned":
        known["tokens"] = tokens
    if attention == "primal" and causal:
        known["data_dependent"] = False
    return known | dict(options)
