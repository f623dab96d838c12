"""How every attention holds, over its seeds, and what it gains over symmetric attention: the numbers of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from attnaudit.claims.claim import CONFIDENCE
from attnaudit.claims.robust_groups import Group, settings
from attnaudit.claims.robust_shared import Shared, clean
from attnaudit.claims.scores import Numbers, student_interval
from attnaudit.evidence.robustness_results import EvaluatedNetwork, Evaluation, Kind

#: What the card of a trained network says of all test pictures.
_TESTED = "test_accuracy"


@dataclass(frozen=True)
class GroupRecord:
    """The accuracy of networks of one attention under one condition, and its difference to the baseline's.

    Intervals are Student's t over seeds, those of gains over the seeds that both have; None for one seed, or for the
    baseline itself. A network under attack is under the attack that leaves it least.
    """

    recipe: str
    condition: str
    seeds: int
    accuracy: float | None
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


def named_groups(evaluations: Sequence[Evaluation]) -> list[tuple[str, Group]]:
    """Attentions of networks that were trained alike, most first; names that occur twice are numbered."""
    alike = sorted(settings(evaluations), key=len, reverse=True)
    groups = [group for own in alike for group in own]
    names = [group.name for group in groups]
    return [
        (name if names.count(name) == 1 else f"{name} ({names[: place + 1].count(name)})", group)
        for place, (name, group) in enumerate(zip(names, groups, strict=True))
    ]


def _records(group: Group, baseline: Group | None, evaluations: Sequence[Evaluation]) -> Iterator[GroupRecord]:
    for kind in (Kind.CLEAN, Kind.CORRUPTION, Kind.ATTACK):
        own = Shared.of([group], kind, evaluations)
        if own is None:
            continue
        both = None if baseline is None or baseline is group else Shared.of([group, baseline], kind, evaluations)
        gains = {} if both is None else {name: both.gains(kept) for name, kept in _conditions(kind, both)}
        for condition, kept in _conditions(kind, own):
            values = np.array([kept(network) for network in own.networks[0]])
            ours = gains.get(condition, np.array([]))
            seen = _summary(values, own.coarseness / 2**0.5), _summary(ours, 0.0 if both is None else both.coarseness)
            yield GroupRecord(group.name, condition, len(values), *seen[0], *seen[1])


def _summary(values: Numbers, coarseness: float) -> tuple[float | None, float | None, float | None]:
    """Mean and interval, as far as there are any."""
    low, high = student_interval(values, CONFIDENCE, coarseness) or (None, None)
    return float(values.mean()) if len(values) else None, low, high


def _conditions(kind: Kind, shared: Shared) -> Iterator[tuple[str, Callable[[EvaluatedNetwork], float]]]:
    """What a table tells apart, with how it is read off a network."""
    if kind is Kind.CLEAN:
        if all(_TESTED in network.facts for networks in shared.networks for network in networks):
            yield "clean, whole test half", lambda network: float(network.facts[_TESTED])
        yield "clean", clean
    elif kind is Kind.CORRUPTION:
        yield "corrupted", shared.corrupted
    else:
        for epsilon in shared.strengths:
            yield f"attacked, ε = {255 * epsilon:.3g}/255", partial(shared.attacked, epsilon=epsilon)
