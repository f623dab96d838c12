"""What groups of evaluated networks have in common, so that they can be compared: seeds, images, conditions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import NamedTuple

import numpy as np

from attnaudit.display import counted
from attnaudit.protocol import Protocol
from attnaudit.records import json_file
from attnaudit.records.evaluated_networks import EvaluatedNetwork, Evaluation
from attnaudit.records.evaluation import ConditionKind, EvaluationIdentity
from attnaudit.robustness.network_groups import NetworkGroup
from attnaudit.statistics.intervals import Numbers, share_coarseness

#: Kinds of conditions whose accuracies are averaged.
AVERAGED = (ConditionKind.CORRUPTION, ConditionKind.NOISE)
#: Attacks are compared in this norm, which bounds the largest change of a pixel.
_NORM = "max"
#: Attacks that follow the gradient of the network itself, in many steps.
_WHITE_BOX = frozenset({"pgd", "apgd", "autoattack"})
#: The one that others are held against: by a weaker one, a difference may be of attacks instead of networks.
_STRONGEST = "autoattack"


class ConditionKey(NamedTuple):
    """A corruption, noise or an attack, and the images or sentences it was applied to."""

    name: str
    strength: float
    steps: int | None
    source: str


@dataclass(frozen=True)
class SharedConditions:
    """Networks of the same seeds in one evaluation, a tuple per group, and the conditions of one kind that all have.

    `passed_over` is the number of evaluations that have such conditions, too, and do not count.
    """

    kind: ConditionKind
    networks: tuple[tuple[EvaluatedNetwork, ...], ...]
    keys: frozenset[ConditionKey]
    images: int
    identity: EvaluationIdentity
    passed_over: int = 0

    @staticmethod
    def of(
        groups: Sequence[NetworkGroup],
        kind: ConditionKind,
        evaluations: Sequence[Evaluation],
        like: SharedConditions | None = None,
    ) -> SharedConditions | None:
        """From the evaluation that counts, if any, or from the same one as `like`; of several, always from the same."""
        found = SharedConditions.all_of(groups, kind, evaluations, like)
        return found[0] if found else None

    @staticmethod
    def all_of(
        groups: Sequence[NetworkGroup],
        kind: ConditionKind,
        evaluations: Sequence[Evaluation],
        like: SharedConditions | None = None,
    ) -> list[SharedConditions]:
        """From the evaluation with most seeds, of these one with AutoAttack, of these that with most images.

        Several if they have as many of all, in an order that does not depend on that of the evaluations. A mean over
        fewer corruptions or noises is a different quantity: those that most seeds have count, and seeds that lack one
        of them are left out. Attacks do not add up: those that all seeds have count, at strengths with a white-box
        attack.
        """
        found = []
        for place, evaluation in enumerate(evaluations):
            seeds, keys = _common(groups, kind, place)
            if kind is ConditionKind.ATTACK:
                strong = {key.strength for key in keys if key.name in _WHITE_BOX}
                keys = frozenset(key for key in keys if key.strength in strong)
            wanted = like is None or (like.identity, like.images) == (evaluation.identity, evaluation.images)
            if keys and wanted:
                networks = tuple(tuple(group.by_evaluation[place][seed] for seed in seeds) for group in groups)
                shared = SharedConditions(kind, networks, keys, evaluation.images, evaluation.identity)
                found.append(((len(seeds), shared.by_autoattack(), evaluation.images), shared))
        most = max((rank for rank, _ in found), default=None)
        best = [shared for rank, shared in found if rank == most]
        best = [replace(shared, passed_over=len(found) - len(best)) for shared in best]
        return sorted(best, key=lambda shared: json.dumps(json_file.plain(shared.identity), sort_keys=True))

    @property
    def origin(self) -> str:
        """Which inputs, and how they were attacked, where that does not go without saying; otherwise empty."""
        protocol, parts = self.identity.settings.protocol, []
        if self.passed_over:
            others = counted(self.passed_over, "other evaluation")
            parts.append(f"{self.images:,} inputs; {others} not counted")
        if protocol is not Protocol.EXACT:
            parts.append(f"protocol {protocol.value}")
        return f" ({'; '.join(parts)})" if parts else ""

    @property
    def strengths(self) -> list[float]:
        """Severities of corruptions, rates of noise, or ε of attacks, in order."""
        return sorted({key.strength for key in self.keys})

    @property
    def coarseness(self) -> float:
        """A lower bound of the standard deviation of a difference; 0 if none is known.

        A mIoU is one of so many pixels that nothing is rounded: differences that are all equal decide nothing.
        """
        segments = any(network.architecture.segments for group in self.networks for network in group)
        return 0.0 if segments else share_coarseness(self.images)

    def differences(self, accuracy: Callable[[EvaluatedNetwork], float]) -> Numbers:
        """The accuracy of the first group less that of the second, by seed."""
        return np.array([accuracy(ours) - accuracy(theirs) for ours, theirs in zip(*self.networks[:2], strict=True)])

    def averaged(self, network: EvaluatedNetwork, strength: float | None = None) -> float:
        """The mean accuracy over corruptions, or over noise, at one severity or rate, or at all."""
        found = _accuracies(network, self.kind)
        return fmean(found[key] for key in sorted(self.keys) if strength in (None, key.strength))

    def by_autoattack(self, epsilon: float | None = None) -> bool:
        """Whether AutoAttack was run on all of them: at this ε, or at any."""
        return any(key.name == _STRONGEST and epsilon in (None, key.strength) for key in self.keys)

    def attacked(self, network: EvaluatedNetwork, epsilon: float) -> float:
        """The accuracy under the strongest attack."""
        found = _accuracies(network, ConditionKind.ATTACK)
        return min(found[key] for key in self.keys if key.strength == epsilon)


def clean_accuracy(network: EvaluatedNetwork) -> float:
    """The accuracy on unchanged images or sentences."""
    return next(own.accuracy for own in network.under(ConditionKind.CLEAN))


def _common(
    groups: Sequence[NetworkGroup], kind: ConditionKind, place: int
) -> tuple[list[int], frozenset[ConditionKey]]:
    """The seeds of one evaluation that are compared, and the conditions that they have in all groups."""
    by_seed = {}
    for seed in sorted(set.intersection(*(set(group.by_evaluation[place]) for group in groups))):
        own = [frozenset(_accuracies(group.by_evaluation[place][seed], kind)) for group in groups]
        if keys := frozenset.intersection(*own):
            by_seed[seed] = keys
    if not by_seed:
        return [], frozenset()
    if kind not in AVERAGED:
        return list(by_seed), frozenset.intersection(*by_seed.values())
    by_seed = _from_one_source(by_seed)
    every = list(by_seed.values())
    # One seed with more conditions, or with fewer, does not change what the others are compared by.
    chosen = max(every, key=lambda keys: (every.count(keys), sum(keys <= own for own in every), len(keys)))
    return [seed for seed, keys in by_seed.items() if chosen <= keys], chosen


def _from_one_source(by_seed: Mapping[int, frozenset[ConditionKey]]) -> dict[int, frozenset[ConditionKey]]:
    """The same conditions, each from the images that most seeds have: a corruption must not count twice in a mean."""
    seeds_with = Counter(key for keys in by_seed.values() for key in keys)
    chosen: dict[tuple[str, float, int | None], ConditionKey] = {}
    for key in sorted(seeds_with, key=lambda key: (-seeds_with[key], key.source)):
        chosen.setdefault(key[:3], key)
    kept = {seed: keys.intersection(chosen.values()) for seed, keys in by_seed.items()}
    return {seed: keys for seed, keys in kept.items() if keys}


def _accuracies(network: EvaluatedNetwork, kind: ConditionKind) -> dict[ConditionKey, float]:
    """By condition; of attacks those in the norm that is compared. At strength 0, nothing is done to an input."""
    return {
        ConditionKey(own.condition.name, own.condition.strength, own.condition.steps, own.source): own.accuracy
        for own in network.under(kind)
        if kind is ConditionKind.CLEAN or own.condition.strength > 0
        if kind is not ConditionKind.ATTACK or own.condition.norm == _NORM
    }
