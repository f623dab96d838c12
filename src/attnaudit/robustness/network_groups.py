"""Evaluated networks that differ only in their attention, grouped by attention and ordered by seed."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from attnaudit.attention.resolved import ResolvedAttention
from attnaudit.errors import RunFolderError, UsageError
from attnaudit.records import json_file
from attnaudit.records.architecture import ATTENTION_FIELDS, ClassifierArchitecture, EncoderArchitecture
from attnaudit.records.evaluated_networks import EvaluatedNetwork, Evaluation


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
        UsageError: two networks have the same attention and seed, or evaluations are of different protocols.
    """
    _check_protocols(evaluations)
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


def _check_protocols(evaluations: Sequence[Evaluation]) -> None:
    """An ε of one protocol is none of the other: the one is of pixels, the other of normalised ones."""
    protocols = sorted({evaluation.identity.settings.protocol.value for evaluation in evaluations})
    if len(protocols) > 1:
        raise UsageError(
            f"The evaluations are of the protocols {' and '.join(protocols)}: judge those of one protocol."
        )


def _attention(network: EvaluatedNetwork) -> ResolvedAttention:
    try:
        return ResolvedAttention.of(network.architecture)
    except UsageError as error:
        raise RunFolderError(
            f"The card of {network.label} in run.json describes an unknown attention: {error}"
        ) from error


def _training_key(network: EvaluatedNetwork) -> str:
    """Equal for networks that were trained alike."""
    same = {
        name: value for name, value in json_file.plain(network.architecture).items() if name not in ATTENTION_FIELDS
    }
    return json.dumps([same, network.facts.get("epochs"), network.facts.get("setting")], sort_keys=True)


def _group(attention: ResolvedAttention, by_evaluation: Sequence[Mapping[int, EvaluatedNetwork]]) -> NetworkGroup:
    name = next(network.facts["recipe"] for by_seed in by_evaluation for network in by_seed.values())
    return NetworkGroup(name, attention, tuple(by_evaluation))
