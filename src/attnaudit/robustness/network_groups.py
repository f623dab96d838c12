"""Evaluated networks that differ only in their attention, grouped by attention and ordered by seed."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from attnaudit.attention.resolved import ResolvedAttention
from attnaudit.display import told_apart
from attnaudit.errors import RunFolderError, UsageError
from attnaudit.records import json_file
from attnaudit.records.architecture import ATTENTION_FIELDS, ClassifierArchitecture, EncoderArchitecture
from attnaudit.records.evaluated_networks import EvaluatedNetwork, Evaluation
from attnaudit.records.evaluation import Quantity


@dataclass(frozen=True)
class NetworkGroup:
    """Networks of one attention, by seed, in each evaluation; named after the recipe that trained them.

    Where two groups have one recipe, what differs in the networks tells them apart or, if that is nothing that a card
    says in words, the label of one of them.
    """

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
    def quantity(self) -> Quantity:
        """By what networks of this kind are compared."""
        return Quantity.MEAN_IOU if self.segments else Quantity.ACCURACY

    @property
    def _architectures(self) -> list[ClassifierArchitecture]:
        return [network.architecture for network in self._networks]

    @property
    def _networks(self) -> list[EvaluatedNetwork]:
        return [network for by_seed in self.by_evaluation for network in by_seed.values()]

    @property
    def sparse_share(self) -> float | None:
        """The mean share of nonzero entries in S over layers and networks; None if a card does not say."""
        shares = []
        for network in self._networks:
            layers = network.facts.get("attention") or {}
            own_shares = [layer["nonzero"] for layer in layers.values() if "nonzero" in layer]
            if not own_shares:
                return None
            shares += own_shares
        return fmean(shares) if shares else None

    def entropy(self, layers: Collection[int]) -> float | None:
        """The mean entropy of attention over these layers and all networks; None if a card does not say."""
        found = []
        for network in self._networks:
            facts = network.facts.get("attention") or {}
            known = [facts[name] for name in sorted(facts, key=_numbers)]
            if len(known) != network.architecture.depth or not all("entropy" in known[layer] for layer in layers):
                return None
            found += [known[layer]["entropy"] for layer in layers]
        return fmean(found)


def comparable_groups(evaluations: Sequence[Evaluation]) -> list[list[NetworkGroup]]:
    """Lists of groups that differ only in their attention: networks of the same size, trained alike on the same data.

    Networks are trained alike if their cards have the same number of epochs and the same `setting`, or none. Those with
    a temperature, of which every seed may have its own, belong together if they are of one recipe.

    Raises:
        UsageError: two networks have the same attention and seed, or evaluations are of different protocols.
    """
    _check_protocols(evaluations)
    found: dict[str, dict[tuple[ResolvedAttention, str | None], list[dict[int, EvaluatedNetwork]]]] = defaultdict(dict)
    for place, evaluation in enumerate(evaluations):
        for network in evaluation.networks:
            if "seed" in network.facts:
                groups, attention = found[_training_key(network)], _attention(network)
                key = attention, network.facts["recipe"] if attention.tempered else None
                by_evaluation = groups.setdefault(key, [{} for _ in evaluations])
                first = by_evaluation[place].setdefault(network.facts["seed"], network)
                if first is not network:
                    own = f"{network.label} with other weights" if network.label == first.label else network.label
                    raise UsageError(f"{first.label} and {own} have the same attention and seed: judge one of them.")
    comparable = [[(attention, runs) for (attention, _), runs in groups.items()] for groups in found.values()]
    every = [_first(runs) for groups in comparable for _, runs in groups]
    names = iter(told_apart([network.facts["recipe"] for network in every], _examples(every)))
    return [[NetworkGroup(next(names), attention, tuple(runs)) for attention, runs in groups] for groups in comparable]


def all_groups(evaluations: Sequence[Evaluation]) -> list[NetworkGroup]:
    """In one list, those with most comparable ones first."""
    return [group for own in sorted(comparable_groups(evaluations), key=len, reverse=True) for group in own]


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


def _examples(networks: Sequence[EvaluatedNetwork]) -> list[str]:
    """What tells each from the others of its recipe: the first size in which all of them differ, or else its label."""
    found = []
    for network in networks:
        namesakes = [_sizes(other) for other in networks if other.facts["recipe"] == network.facts["recipe"]]
        own = _sizes(network)
        telling = [name for name in own if len({repr(sizes.get(name)) for sizes in namesakes}) == len(namesakes) > 1]
        found.append(f"{telling[0].replace('_', ' ')} {own[telling[0]]}" if telling else network.label)
    return found


def _sizes(network: EvaluatedNetwork) -> dict[str, object]:
    """The architecture without its attention, and the length of the training."""
    own = json_file.plain(network.architecture) | {"epochs": network.facts.get("epochs")}
    return {name: value for name, value in own.items() if name not in ATTENTION_FIELDS}


def _numbers(name: str) -> list[int]:
    """Those in the name of a layer, by which layers are in order: 10 comes after 2."""
    return [int(number) for number in re.findall(r"\d+", name)]


def _first(by_evaluation: Sequence[Mapping[int, EvaluatedNetwork]]) -> EvaluatedNetwork:
    return next(network for by_seed in by_evaluation for network in by_seed.values())
