"""Evaluated networks that differ only in their attention, grouped by attention and ordered by seed."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import fmean
from typing import Any

from attnaudit.attention.functional import Pursuit
from attnaudit.errors import RunFolderError, UsageError
from attnaudit.records import json_file
from attnaudit.records.architecture import (
    REFERENCE_ATTENTION,
    ClassifierArchitecture,
    EncoderArchitecture,
)
from attnaudit.records.evaluated_networks import EvaluatedNetwork, Evaluation

_ATTENTION = ("attention", "attention_layers", "attention_options", "other_attention")
_SYMMETRIC = "symmetric"
_PURSUIT = (*(field.name for field in fields(Pursuit)), "preset")


@dataclass(frozen=True)
class ResolvedAttention:
    """The attention of a network with its defaults filled in, so that equal attentions compare equal.

    `asymmetric` is RPC-Attention with queries of its own. `tempered` is attention with any temperature but 1, since
    every seed may have its own. `options` are all others.
    """

    name: str
    layers: tuple[int, ...]
    other: str
    pursuit: Pursuit | None = None
    asymmetric: bool = False
    tempered: bool = False
    options: str = "{}"

    @staticmethod
    def of(architecture: ClassifierArchitecture) -> ResolvedAttention:
        """As a card describes it."""
        name, layers = architecture.attention, architecture.attention_layers
        depth, options = architecture.depth, dict(architecture.attention_options)
        pursuit = _pursuit(options) if name == "rpc" else None
        asymmetric = bool(options.pop("asymmetric", False))
        tempered = options.pop("temperature", 1) != 1
        everywhere = tuple(range(depth))
        chosen = everywhere if layers is None else tuple(sorted(layer % depth for layer in layers))
        other = name if chosen == everywhere else architecture.other_attention
        if other == name and pursuit is None and not tempered:
            chosen = everywhere
        rest = json.dumps(options, sort_keys=True)
        return ResolvedAttention(name, chosen, other, pursuit, asymmetric, tempered, rest)

    @property
    def is_plain_symmetric(self) -> bool:
        """Whether it is the baseline of RPC-Attention."""
        return self.name == self.other == _SYMMETRIC and not self.tempered

    @property
    def is_iterated_rpc(self) -> bool:
        """Whether it is RPC-Attention with more than one iteration, in an otherwise symmetric network."""
        return self._pursues and not self.asymmetric and self.other in (_SYMMETRIC, self.name)

    @property
    def is_asymmetric_rpc(self) -> bool:
        """The same with queries of its own, in a network of softmax attention."""
        return self._pursues and self.asymmetric and self.other in (REFERENCE_ATTENTION, self.name)

    @property
    def is_softmax(self) -> bool:
        """Whether it is the attention of most networks."""
        return self.name == self.other == REFERENCE_ATTENTION

    @property
    def _pursues(self) -> bool:
        return self.pursuit is not None and self.pursuit.iterations > 1 and self.pursuit.sparse == "outliers"


@dataclass(frozen=True)
class NetworkGroup:
    """Networks of one attention, by seed, in each evaluation; named after the recipe that trained them."""

    name: str
    attention: ResolvedAttention
    by_evaluation: tuple[Mapping[int, EvaluatedNetwork], ...]

    @property
    def classifies_images(self) -> bool:
        """Whether the networks name images, and do not segment or read."""
        return not self.segments and not self.reads_sentences

    @property
    def segments(self) -> bool:
        """Whether the networks segment, and do not classify."""
        return any(own.segments for own in self._architectures)

    @property
    def reads_sentences(self) -> bool:
        """Whether the networks are encoders that name sentences."""
        return any(isinstance(own, EncoderArchitecture) for own in self._architectures)

    @property
    def _architectures(self) -> list[ClassifierArchitecture]:
        return [network.architecture for by_seed in self.by_evaluation for network in by_seed.values()]

    @property
    def sparse_share(self) -> float | None:
        """The mean share of nonzero entries in S over layers and networks; None if a card does not say."""
        shares = []
        for network in (network for by_seed in self.by_evaluation for network in by_seed.values()):
            layers = network.facts.get("attention") or {}
            own_shares = [layer["nonzero"] for layer in layers.values() if "nonzero" in layer]
            if not own_shares:
                return None
            shares += own_shares
        return fmean(shares) if shares else None


def comparable_groups(evaluations: Sequence[Evaluation]) -> list[list[NetworkGroup]]:
    """Lists of groups that differ only in their attention: networks of the same size, trained alike on the same data.

    Networks are trained alike if their cards have the same number of epochs and the same `setting`, or none.

    Raises:
        UsageError: two networks have the same attention and seed.
    """
    found: dict[str, dict[ResolvedAttention, list[dict[int, EvaluatedNetwork]]]] = defaultdict(dict)
    for place, evaluation in enumerate(evaluations):
        for network in evaluation.networks:
            if "seed" in network.facts:
                groups = found[_training_key(network)]
                by_evaluation = groups.setdefault(_attention(network), [{} for _ in evaluations])
                first = by_evaluation[place].setdefault(network.facts["seed"], network)
                if first is not network:
                    own = f"{network.label} with other weights" if network.label == first.label else network.label
                    raise UsageError(f"{first.label} and {own} have the same attention and seed: judge one of them.")
    return [[_group(attention, runs) for attention, runs in groups.items()] for groups in found.values()]


def named_groups(evaluations: Sequence[Evaluation]) -> list[tuple[str, NetworkGroup]]:
    """All groups by name, those with most comparable ones first; names that occur twice are numbered."""
    comparable = sorted(comparable_groups(evaluations), key=len, reverse=True)
    groups = [group for own in comparable for group in own]
    names = [group.name for group in groups]
    return [
        (name if names.count(name) == 1 else f"{name} ({names[: place + 1].count(name)})", group)
        for place, (name, group) in enumerate(zip(names, groups, strict=True))
    ]


def _pursuit(options: dict[str, Any]) -> Pursuit:
    """The settings of the pursuit, removed from the options of an attention; None means the preset's."""
    own = {name: options.pop(name) for name in _PURSUIT if name in options}
    given = {name: value for name, value in own.items() if value is not None}
    preset = str(given.pop("preset", "code"))
    typed = json_file.parse(Pursuit, given, "attention_options")
    return Pursuit.preset(preset, **{name: getattr(typed, name) for name in given})


def _attention(network: EvaluatedNetwork) -> ResolvedAttention:
    try:
        return ResolvedAttention.of(network.architecture)
    except UsageError as error:
        raise RunFolderError(
            f"The card of {network.label} in run.json describes an unknown attention: {error}"
        ) from error


def _training_key(network: EvaluatedNetwork) -> str:
    """Equal for networks that were trained alike."""
    same = {name: value for name, value in json_file.plain(network.architecture).items() if name not in _ATTENTION}
    return json.dumps([same, network.facts.get("epochs"), network.facts.get("setting")], sort_keys=True)


def _group(attention: ResolvedAttention, by_evaluation: Sequence[Mapping[int, EvaluatedNetwork]]) -> NetworkGroup:
    name = next(network.facts["recipe"] for by_seed in by_evaluation for network in by_seed.values())
    return NetworkGroup(name, attention, tuple(by_evaluation))
