"""What evaluated networks have in common, so that they can be compared: seeds, images, conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import numpy as np

from attnaudit.claims.robust_groups import Group
from attnaudit.records.evaluated_networks import EvaluatedNetwork, Evaluation
from attnaudit.records.evaluation import ConditionKind
from attnaudit.statistics.intervals import CONFIDENCE, Numbers, student_interval

#: Attacks are compared in this norm, which bounds the largest change of a pixel.
_NORM = "max"
#: Attacks that follow the gradient of the network itself, in many steps.
_WHITE_BOX = frozenset({"pgd", "apgd", "autoattack"})


class Key(NamedTuple):
    """A corruption or an attack, with what was shown."""

    name: str
    strength: float
    steps: int | None
    source: str


@dataclass(frozen=True)
class Shared:
    """What some groups have in common in one evaluation: networks of the same seeds, and conditions of a kind."""

    networks: tuple[tuple[EvaluatedNetwork, ...], ...]
    keys: frozenset[Key]
    images: int

    @staticmethod
    def of(groups: Sequence[Group], kind: ConditionKind, evaluations: Sequence[Evaluation]) -> Shared | None:
        """In the evaluation with most seeds, and of these with most images; None if none has all groups.

        Seeds that lack a corruption which others have are left out, since a mean over fewer is another one. Of attacks,
        which do not add up, those count that all have, if one of them is strong.
        """
        found = []
        for place, evaluation in enumerate(evaluations):
            by_seed = {
                seed: frozenset.intersection(
                    *(frozenset(_accuracies(group.runs[place][seed], kind)) for group in groups)
                )
                for seed in sorted(set.intersection(*(set(group.runs[place]) for group in groups)))
            }
            most = max(by_seed.values(), key=len, default=frozenset())
            seeds = [seed for seed, keys in by_seed.items() if kind is not ConditionKind.CORRUPTION or keys == most]
            keys = frozenset.intersection(*(by_seed[seed] for seed in seeds)) if seeds else frozenset()
            if kind is ConditionKind.ATTACK:
                strong = {key.strength for key in keys if key.name in _WHITE_BOX}
                keys = frozenset(key for key in keys if key.strength in strong)
            if keys:
                networks = tuple(tuple(group.runs[place][seed] for seed in seeds) for group in groups)
                found.append((len(seeds), evaluation.images, Shared(networks, keys, evaluation.images)))
        return max(found, key=lambda entry: entry[:2])[2] if found else None

    @property
    def strengths(self) -> list[float]:
        """Of the conditions, in order: severities, or ε."""
        return sorted({key.strength for key in self.keys})

    @property
    def coarseness(self) -> float:
        """Standard deviation of a difference of two shares, each known to an image: Var = 2/12 images⁻²."""
        return 1 / (6**0.5 * self.images)

    def gains(self, kept: Callable[[EvaluatedNetwork], float]) -> Numbers:
        """Of the first group over the second, by seed."""
        return np.array([kept(ours) - kept(theirs) for ours, theirs in zip(*self.networks[:2], strict=True)])

    def corrupted(self, network: EvaluatedNetwork, severity: float | None = None) -> float:
        """The mean accuracy over corruptions, at one severity or at all."""
        found = _accuracies(network, ConditionKind.CORRUPTION)
        return fmean(found[key] for key in sorted(self.keys) if severity in (None, key.strength))

    def attacked(self, network: EvaluatedNetwork, epsilon: float) -> float:
        """The accuracy under the attack that leaves least."""
        at = [key for key in self.keys if key.strength == epsilon]
        found = _accuracies(network, ConditionKind.ATTACK)
        return min(found[key] for key in at)


def interval_over_seeds(values: Numbers, coarseness: float) -> tuple[float | None, float | None]:
    """Student's interval of their mean, where there are two at least."""
    return student_interval(values, CONFIDENCE, coarseness) or (None, None)


def clean(network: EvaluatedNetwork) -> float:
    """The accuracy on images as they are."""
    return next(held.accuracy for held in network.under(ConditionKind.CLEAN))


def _accuracies(network: EvaluatedNetwork, kind: ConditionKind) -> dict[Key, float]:
    """By condition; of attacks those in the norm that is compared."""
    return {
        Key(own.condition.name, own.condition.strength, own.condition.steps, own.source): own.accuracy
        for own in network.under(kind)
        if kind is not ConditionKind.ATTACK or own.condition.norm == _NORM
    }
