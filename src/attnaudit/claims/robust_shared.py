"""What evaluated networks have in common, so that they can be compared: seeds, pictures, conditions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from attnaudit.claims.robust_groups import Group
from attnaudit.claims.scores import Numbers
from attnaudit.evidence.robustness_results import EvaluatedNetwork, Evaluation, Kind

#: Attacks are compared in this norm, which bounds the largest change of a pixel.
_NORM = "max"

#: (name, strength) of a corruption or an attack.
Key = tuple[str, float]


@dataclass(frozen=True)
class Shared:
    """What some groups have in common in one evaluation: networks of the same seeds, and conditions of a kind."""

    networks: tuple[tuple[EvaluatedNetwork, ...], ...]
    keys: frozenset[Key]
    pictures: int

    @staticmethod
    def of(groups: Sequence[Group], kind: Kind, evaluations: Sequence[Evaluation]) -> Shared | None:
        """In the evaluation with most seeds, and of these with most pictures; None if none has all groups."""
        found = []
        for place, evaluation in enumerate(evaluations):
            seeds = sorted(set.intersection(*(set(group.runs[place]) for group in groups)))
            networks = tuple(tuple(group.runs[place][seed] for seed in seeds) for group in groups)
            sets = [frozenset(_accuracies(network, kind)) for own in networks for network in own]
            if sets and (keys := frozenset.intersection(*sets)):
                found.append((len(seeds), evaluation.pictures, Shared(networks, keys, evaluation.pictures)))
        return max(found, key=lambda entry: entry[:2])[2] if found else None

    @property
    def strengths(self) -> list[float]:
        """Of the conditions, in order: severities, or ε."""
        return sorted({strength for _, strength in self.keys})

    @property
    def coarseness(self) -> float:
        """Standard deviation of a difference of two shares, each known to a picture: Var = 2/12 pictures⁻²."""
        return 1 / (6**0.5 * self.pictures)

    def gains(self, kept: Callable[[EvaluatedNetwork], float]) -> Numbers:
        """Of the first group over the second, by seed."""
        return np.array([kept(ours) - kept(theirs) for ours, theirs in zip(*self.networks[:2], strict=True)])

    def corrupted(self, network: EvaluatedNetwork) -> float:
        """The mean accuracy over corruptions and severities."""
        return float(np.mean(list(_accuracies(network, Kind.CORRUPTION, self.keys).values())))

    def attacked(self, network: EvaluatedNetwork, epsilon: float) -> float:
        """The accuracy under the attack that leaves least."""
        at = [key for key in self.keys if key[1] == epsilon]
        return min(_accuracies(network, Kind.ATTACK, at).values())


def clean(network: EvaluatedNetwork) -> float:
    """The accuracy on pictures as they are."""
    return next(held.accuracy for held in network.under(Kind.CLEAN))


def _accuracies(network: EvaluatedNetwork, kind: Kind, keys: Collection[Key] | None = None) -> dict[Key, float]:
    """By condition; of attacks those in the norm that is compared."""
    found = {
        (held.name, held.strength): held.accuracy
        for held in network.under(kind)
        if kind is not Kind.ATTACK or held.norm == _NORM
    }
    return found if keys is None else {key: found[key] for key in keys}
