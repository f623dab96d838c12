"""The table of the SST-2 experiment: accuracy by attention and condition, and gains over two baselines."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from benchmarks.robustness_tables import heading

from attnaudit.records.evaluated_networks import EvaluatedNetwork, Evaluation
from attnaudit.records.evaluation import ConditionKind
from attnaudit.robustness.network_groups import NetworkGroup, all_groups
from attnaudit.robustness.shared_conditions import SharedConditions, clean_accuracy
from attnaudit.statistics.intervals import CONFIDENCE, share_coarseness, student_interval

Accuracy = Callable[[EvaluatedNetwork], float]


def table(evaluation: Evaluation) -> str:
    """Markdown: accuracies in per cent, then points over softmax and over symmetric attention, paired by seed."""
    groups = all_groups([evaluation])
    columns = _columns(evaluation)
    lines = [f"Accuracy in per cent on {evaluation.images} sentences, mean over seeds [95 %, Student's t]:", ""]
    lines += heading(["", "seeds", *columns])
    for group in groups:
        networks = list(group.by_evaluation[0].values())
        cells = [_mean(np.array([of(network) for network in networks]), evaluation.images) for of in columns.values()]
        lines.append(f"| {group.name} | {len(networks)} | {' | '.join(cells)} |")
    for words, chosen in (("softmax", lambda a: a.is_softmax), ("symmetric", lambda a: a.is_plain_symmetric)):
        baseline = next((group for group in groups if chosen(group.attention)), None)
        if baseline is not None:
            lines += ["", f"Points over {words}, paired by seed [95 %, Student's t]:", "", *heading(["", *columns])]
            lines += [
                f"| {group.name} | {' | '.join(_gains(group, baseline, columns, evaluation))} |"
                for group in groups
                if group is not baseline
            ]
    return "\n".join([*lines, ""])


def _columns(evaluation: Evaluation) -> dict[str, Accuracy]:
    """Clean, the mean over all noise, and each noise over its rates."""
    found: dict[str, Accuracy] = {"clean": clean_accuracy}
    noises = [own.condition.name for own in evaluation.networks[0].under(ConditionKind.NOISE)]

    def noisy(network: EvaluatedNetwork, name: str | None = None) -> float:
        own = [a.accuracy for a in network.under(ConditionKind.NOISE) if name in (None, a.condition.name)]
        return float(np.mean(own))

    if noises:
        found["all noise"] = noisy
    for name in dict.fromkeys(noises):
        found[name] = lambda network, name=name: noisy(network, name)  # type: ignore[misc]
    return found


def _mean(values: np.ndarray, images: int, *, sign: str = "", coarseness: float | None = None) -> str:
    least = share_coarseness(images) / 2**0.5 if coarseness is None else coarseness
    interval = student_interval(values, CONFIDENCE, least)
    mean = f"{100 * values.mean():{sign}.2f}"
    return mean if interval is None else f"{mean} [{100 * interval[0]:{sign}.2f}, {100 * interval[1]:{sign}.2f}]"


def _gains(
    group: NetworkGroup, baseline: NetworkGroup, columns: dict[str, Accuracy], evaluation: Evaluation
) -> list[str]:
    shared = SharedConditions.of([group, baseline], ConditionKind.CLEAN, [evaluation])
    if shared is None:
        return ["–"] * len(columns)
    differences = (shared.differences(of) for of in columns.values())
    return [_mean(own, evaluation.images, sign="+", coarseness=shared.coarseness) for own in differences]
