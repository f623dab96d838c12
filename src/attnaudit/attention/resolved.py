"""Which attention a network has, said in one way, so that networks can be compared by it."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Any

from attnaudit.attention.functional import Pursuit
from attnaudit.records import json_file
from attnaudit.records.architecture import (
    REFERENCE_ATTENTION,
    Architecture,
    DecoderArchitecture,
    EncoderArchitecture,
)

_SYMMETRIC, _SCALED = "symmetric", "scaled"
_PURSUIT = (*(field.name for field in fields(Pursuit)), "preset")
#: What RPC-Attention and Scaled Attention modify: the other blocks of their networks have one of these.
_PLAIN = (REFERENCE_ATTENTION, _SYMMETRIC)
#: The form of Scaled Attention by default.
_FORM = ("form", "alpha")

AnyArchitecture = Architecture | DecoderArchitecture | EncoderArchitecture


@dataclass(frozen=True)
class ResolvedAttention:
    """The attention of a network with its defaults filled in, so that equal attentions compare equal.

    `other` is that of the blocks not in `layers`, with its default options; None if there are none. `asymmetric` is
    RPC-Attention with queries of its own. `tempered` is attention with any temperature but 1, since every seed may have
    its own. `options` are all others.
    """

    name: str
    layers: tuple[int, ...]
    other: str | None
    pursuit: Pursuit | None = None
    asymmetric: bool = False
    tempered: bool = False
    options: str = "{}"

    @staticmethod
    def of(architecture: AnyArchitecture) -> ResolvedAttention:
        """As a card describes it."""
        depth, layers = architecture.depth, architecture.attention_layers
        everywhere = set(range(depth))
        chosen = everywhere if layers is None else {layer % depth for layer in layers}
        own = _in_layers(architecture.attention, chosen, dict(architecture.attention_options))
        if chosen == everywhere:
            return own
        others = _in_layers(architecture.other_attention, everywhere - chosen, {})
        if replace(own, layers=()) == replace(others, layers=()):
            return replace(own, layers=tuple(range(depth)))
        if own._is_plain(own.name) and own.name in _PLAIN and others.name not in _PLAIN:
            return replace(others, other=own.name)  # the variant names the network, whichever was written first
        return replace(own, other=others.name)

    @property
    def is_plain_symmetric(self) -> bool:
        """Whether it is the baseline of RPC-Attention."""
        return self._is_plain(_SYMMETRIC)

    @property
    def is_tempered_symmetric(self) -> bool:
        """Whether it is symmetric attention everywhere, with a temperature in its layers."""
        return self.name == _SYMMETRIC and self.other in (None, _SYMMETRIC) and self.tempered

    @property
    def is_iterated_rpc(self) -> bool:
        """Whether it is RPC-Attention with more than one iteration, in an otherwise symmetric network."""
        return self._pursues and not self.asymmetric and self.other in (None, _SYMMETRIC, self.name)

    @property
    def is_asymmetric_rpc(self) -> bool:
        """The same with queries of its own, in a network of softmax attention."""
        return self._pursues and self.asymmetric and self.other in (None, REFERENCE_ATTENTION)

    @property
    def is_scaled(self) -> bool:
        """Whether it is Scaled Attention, in an otherwise softmax network."""
        return self.name == _SCALED and self.other in (None, REFERENCE_ATTENTION, _SCALED)

    @property
    def is_softmax(self) -> bool:
        """Whether it is the attention of most networks."""
        return self._is_plain(REFERENCE_ATTENTION)

    def _is_plain(self, name: str) -> bool:
        """Whether all layers have this attention as it is by default: anything else is no baseline."""
        return self.name == name and self.other is None and not self.tempered and self.options == "{}"

    @property
    def _pursues(self) -> bool:
        return self.pursuit is not None and self.pursuit.iterations > 1 and self.pursuit.sparse == "outliers"


def _in_layers(name: str, layers: Collection[int], options: dict[str, Any]) -> ResolvedAttention:
    """One attention in its layers, whatever the others have."""
    pursuit = _pursuit(options) if name == "rpc" else None
    asymmetric = bool(options.pop("asymmetric", False))
    tempered = options.pop("temperature", 1) != 1
    if name == _SCALED:  # the number of tokens follows from the network
        options = {key: value for key, value in options.items() if (key, value) != _FORM and key != "tokens"}
    rest = json.dumps(options, sort_keys=True)
    return ResolvedAttention(name, tuple(sorted(layers)), None, pursuit, asymmetric, tempered, rest)


def _pursuit(options: dict[str, Any]) -> Pursuit:
    """The settings of the pursuit, removed from the options of an attention; None means the preset's."""
    own = {name: options.pop(name) for name in _PURSUIT if name in options}
    given = {name: value for name, value in own.items() if value is not None}
    preset = str(given.pop("preset", "code"))
    typed = json_file.parse(Pursuit, given, "attention_options")
    return Pursuit.preset(preset, **{name: getattr(typed, name) for name in given})
