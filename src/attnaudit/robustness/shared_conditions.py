"""What groups of evaluated networks have in common, so that they can be compared: seeds, images, conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import numpy as np

from attnaudit.records.evaluated_networks import EvaluatedNetwork, Evaluation
from attnaudit.records.evaluation import ConditionKind
from attnaudit.robustness.network_groups import NetworkGroup
from attnaudit.statistics.intervals import Numbers

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
    """Networks of the same seeds in one evaluation, a tuple per group, and the conditions of one kind that all have."""

    kind: ConditionKind
    networks: tuple[tuple[EvaluatedNetwork, ...], ...]
    keys: frozenset[ConditionKey]
    images: int

    @staticmethod
    def of(
        groups: Sequence[NetworkGroup], kind: ConditionKind, evaluations: Sequence[Evaluation]
    ) -> SharedConditions | None:
        """From the evaluation with most seeds, of these one with AutoAttack, of these that with most images, if any.

        A seed without a corruption or noise that others have is left out, since a mean over fewer is a different
        quantity. Attacks do not add up: those that all seeds have count, at strengths with a white-box attack.
        """
        found = []
        for place, evaluation in enumerate(evaluations):
            by_seed = {
                seed: frozenset.intersection(
                    *(frozenset(_accuracies(group.by_evaluation[place][seed], kind)) for group in groups)
                )
                for seed in sorted(set.intersection(*(set(group.by_evaluation[place]) for group in groups)))
            }
            most = max(by_seed.values(), key=len, default=frozenset())
            seeds = [seed for seed, keys in by_seed.items() if kind not in AVERAGED or keys == most]
            keys = frozenset.intersection(*(by_seed[seed] for seed in seeds)) if seeds else frozenset()
            if kind is ConditionKind.ATTACK:
                strong = {key.strength for key in keys if key.name in _WHITE_BOX}
                keys = frozenset(key for key in keys if key.strength in strong)
            if keys:
                networks = tuple(tuple(group.by_evaluation[place][seed] for seed in seeds) for group in groups)
                shared = SharedConditions(kind, networks, keys, evaluation.images)
                found.append(((len(seeds), shared.by_autoattack(), evaluation.images), shared))
        return max(found, key=lambda entry: entry[0])[1] if found else None

    @property
    def strengths(self) -> list[float]:
        """Severities of corruptions, rates of noise, or ε of attacks, in order."""
        return sorted({key.strength for key in self.keys})

    @property
    def coarseness(self) -> float:
        """Standard deviation of a difference of two shares, each rounded to one image: Var = 2/12 images⁻².

        A mIoU is one of so many pixels that nothing is rounded.
        """
        segments = any(network.architecture.segments for group in self.networks for network in group)
        return 0.0 if segments else 1 / (6**0.5 * self.images)

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


def _accuracies(network: EvaluatedNetwork, kind: ConditionKind) -> dict[ConditionKey, float]:
    """By condition; of attacks those in the norm that is compared."""
    return {
        ConditionKey(own.condition.name, own.condition.strength, own.condition.steps, own.source): own.accuracy
        for own in network.under(kind)
        if kind is not ConditionKind.ATTACK or own.condition.norm == _NORM
    }
