"""How every attention holds, over its seeds, and what it gains over symmetric attention: the numbers of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from attnaudit.claims.robust_groups import Group, named_groups
from attnaudit.claims.robust_shared import Shared, clean, interval_over_seeds
from attnaudit.records.evaluated_networks import EvaluatedNetwork, Evaluation
from attnaudit.records.evaluation import ConditionKind


@dataclass(frozen=True)
class GroupRecord:
    """The accuracy of networks of one attention under one condition, and its difference to the baseline's.

    Intervals are Student's t over seeds, those of gains over the seeds that both have; None for one seed, or for the
    baseline itself. A network under attack is under the attack that leaves it least.
    """

    recipe: str
    condition: str
    seeds: int
    accuracy: float
    low: float | None
    high: float | None
    gain: float | None
    gain_low: float | None
    gain_high: float | None


def group_records(evaluations: Sequence[Evaluation]) -> list[GroupRecord]:
    """By attention and condition.

    The baseline is the plain symmetric attention among most others that were trained alike; networks of another size
    are held against it, too.
    """
    groups = named_groups(evaluations)
    baseline = next((group for _, group in groups if group.choice.is_plain_symmetric), None)
    return [replace(record, recipe=name) for name, group in groups for record in _records(group, baseline, evaluations)]


def _records(group: Group, baseline: Group | None, evaluations: Sequence[Evaluation]) -> Iterator[GroupRecord]:
    for kind in (ConditionKind.CLEAN, ConditionKind.CORRUPTION, ConditionKind.ATTACK):
        own = Shared.of([group], kind, evaluations)
        if own is None:
            continue
        both = None if baseline is None or baseline is group else Shared.of([group, baseline], kind, evaluations)
        gains = {} if both is None else {name: both.gains(kept) for name, kept in _conditions(kind, both)}
        for condition, kept in _conditions(kind, own):
            values = np.array([kept(network) for network in own.networks[0]])
            ours = gains.get(condition, np.array([]))
            interval = interval_over_seeds(values, own.coarseness / 2**0.5)
            gain = float(ours.mean()) if len(ours) else None
            gained = interval_over_seeds(ours, 0.0 if both is None else both.coarseness)
            yield GroupRecord(group.name, condition, len(values), float(values.mean()), *interval, gain, *gained)


def _conditions(kind: ConditionKind, shared: Shared) -> Iterator[tuple[str, Callable[[EvaluatedNetwork], float]]]:
    """What a table tells apart, with how it is read off a network."""
    if kind is ConditionKind.CLEAN:
        if all("test_accuracy" in network.facts for networks in shared.networks for network in networks):
            yield "clean, whole test half", lambda network: network.facts["test_accuracy"]
        yield "clean", clean
    elif kind is ConditionKind.CORRUPTION:
        yield "corrupted", shared.corrupted
    else:
        for epsilon in shared.strengths:
            yield f"attacked, ε = {255 * epsilon:.3g}/255", partial(shared.attacked, epsilon=epsilon)
