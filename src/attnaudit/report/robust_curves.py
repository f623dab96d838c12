"""How every attention holds as corruption and attack grow stronger, over its seeds: the numbers of an image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from attnaudit.claims.robust_groups import Group, named_groups
from attnaudit.claims.robust_shared import Shared, clean, interval_over_seeds
from attnaudit.records.evaluated_networks import EvaluatedNetwork, Evaluation
from attnaudit.records.evaluation import ConditionKind


@dataclass(frozen=True)
class HoldingRecord:
    """The accuracy of networks of one attention at one strength: a severity, or an ε; 0 is nothing done.

    The interval is Student's t over seeds; None for one seed.
    """

    recipe: str
    kind: str
    strength: float
    seeds: int
    accuracy: float
    low: float | None
    high: float | None


def holding_records(evaluations: Sequence[Evaluation]) -> list[HoldingRecord]:
    """By attention, kind and strength: the mean over corruptions, and the least over attacks."""
    return [
        record
        for name, group in named_groups(evaluations)
        for kind in (ConditionKind.CORRUPTION, ConditionKind.ATTACK)
        for record in _records(name, group, kind, evaluations)
    ]


def _records(
    name: str, group: Group, kind: ConditionKind, evaluations: Sequence[Evaluation]
) -> Iterator[HoldingRecord]:
    shared = Shared.of([group], kind, evaluations)
    if shared is None:
        return
    kept = shared.corrupted if kind is ConditionKind.CORRUPTION else shared.attacked

    def at(network: EvaluatedNetwork, strength: float) -> float:
        return kept(network, strength) if strength else clean(network)

    for strength in sorted({0.0, *shared.strengths}):
        values = np.array([at(network, strength) for network in shared.networks[0]])
        interval = interval_over_seeds(values, shared.coarseness / 2**0.5)
        yield HoldingRecord(name, kind.value, strength, len(values), float(values.mean()), *interval)
