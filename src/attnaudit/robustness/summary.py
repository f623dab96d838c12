"""From rows to statements: accuracy of every condition, mean corruption error, outliers, checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnaudit.errors import UsageError
from attnaudit.records.evaluation import Accuracy, Condition, ConditionKind, EvaluationScore, EvaluationSummary
from attnaudit.robustness.conditions import CLEAN, OUTLIERS
from attnaudit.robustness.corruption_error import ALEXNET_ERRORS, mean_corruption_error
from attnaudit.robustness.corruptions import CORRUPTIONS, SEVERITIES
from attnaudit.robustness.masking_checks import masking_checks
from attnaudit.robustness.plan import EvaluationPlan
from attnaudit.robustness.segmentation import class_scores, segmentation_accuracies
from attnaudit.robustness.sentences import SentenceExamples
from attnaudit.robustness.table import Results
from attnaudit.sources.segmented import SegmentedImages
from attnaudit.statistics.areas import area_under_precision_recall
from attnaudit.statistics.intervals import bootstrap, wilson_interval

ALEXNET = "AlexNet"
_RESAMPLES = 1_000


def summarise(results: Results, plan: EvaluationPlan, baseline: str | None) -> EvaluationSummary:
    """Everything that the rows of a run amount to."""
    if isinstance(plan.examples.data, SegmentedImages):
        return _segmentation(results, plan, plan.examples.data.names)
    labels = [model.label for model in plan.models]
    judged = [condition for condition in plan.conditions if condition != OUTLIERS]
    accuracies = tuple(
        _accuracy(results, label, condition, plan.source(condition)) for label in labels for condition in judged
    )
    scores = [*_corruption_errors(results, plan, labels, baseline), *_outlier_scores(results, plan, labels)]
    checked = labels if plan.checks else []
    checks = [check for label in checked for check in masking_checks(results, label, plan.conditions)]
    shown = tuple(entry for entry in accuracies if entry.condition.kind is not ConditionKind.CHECK)
    examples = "sentences" if isinstance(plan.examples, SentenceExamples) else "images"
    return EvaluationSummary(shown, tuple(scores), tuple(checks), examples)


def _segmentation(results: Results, plan: EvaluationPlan, names: Sequence[str] | None) -> EvaluationSummary:
    """How well masks are predicted under every condition, and on clean pictures also by class."""
    seed = plan.settings.seed
    accuracies = [
        entry
        for model in plan.models
        for condition in plan.conditions
        for entry in segmentation_accuracies(results, model, condition, plan.source(condition), seed)
    ]
    by_class = plan.models if CLEAN in plan.conditions else ()
    scores = [score for model in by_class for score in class_scores(results, model, names, seed)]
    return EvaluationSummary(tuple(accuracies), tuple(scores), ())


def _accuracy(results: Results, model: str, condition: Condition, source: str) -> Accuracy:
    own, right = results.under(model, condition), results.right(model, condition)
    changes = own["perturbation"].drop_null().to_numpy()
    count = int(right.sum())
    return Accuracy(
        model,
        condition,
        source,
        len(right),
        count,
        count / len(right),
        wilson_interval(count, len(right)),
        float(changes.max()) if len(changes) else None,
        float(own["seconds"].to_numpy().sum()),
    )


def _corruption_errors(
    results: Results, plan: EvaluationPlan, labels: Sequence[str], baseline: str | None
) -> list[EvaluationScore]:
    """The mCE of every model: against the named baseline, or AlexNet where its constants mean something."""
    conditions = [condition for condition in plan.conditions if condition.kind is ConditionKind.CORRUPTION]
    if baseline is not None and baseline not in labels:
        raise UsageError(f"The baseline {baseline} is not among the models evaluated: {', '.join(labels)}.")
    complete = {(c.name, round(c.strength)) for c in conditions} == {(c, s) for c in CORRUPTIONS for s in SEVERITIES}
    imagenet = all(subject.model.outputs == 1000 for subject in plan.subjects)
    if not conditions or (baseline is None and not (complete and imagenet)):
        return []
    wrong = {label: np.stack([~results.right(label, condition) for condition in conditions]) for label in labels}
    base = {name: [error] for name, error in ALEXNET_ERRORS.items()}

    def errors(label: str, drawn: NDArray[np.int64]) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        for condition, error in zip(conditions, wrong[label][:, drawn].mean(axis=1).tolist(), strict=True):
            found.setdefault(condition.name, []).append(error)
        return found

    def score(label: str, drawn: NDArray[np.int64]) -> float:
        return mean_corruption_error(errors(label, drawn), base if baseline is None else errors(baseline, drawn))

    name, images = f"mCE against {baseline or ALEXNET}", len(plan.examples.indices)
    if isnan(score(labels[0], np.arange(images))):
        raise UsageError(
            f"{baseline} makes no error under one of the corruptions, so that there is nothing to divide by: take more "
            "images, or leave --baseline out."
        )
    return [
        EvaluationScore(label, name, *_bootstrapped(partial(score, label), [images], plan.settings.seed))
        for label in labels
    ]


def _outlier_scores(results: Results, plan: EvaluationPlan, labels: Sequence[str]) -> list[EvaluationScore]:
    """AUPR of telling outliers (positive) from the clean images by the smallness of the largest probability."""
    if OUTLIERS not in plan.conditions:
        return []
    scores = []
    for label in labels:
        known, unknown = (-results.under(label, condition)["confidence"].to_numpy() for condition in (CLEAN, OUTLIERS))
        values = np.concatenate([known, unknown])
        outlier = np.arange(len(values)) >= len(known)

        def area(drawn: NDArray[np.int64], outlier: Any = outlier, values: Any = values) -> float:
            return area_under_precision_recall(outlier[drawn], values[drawn])

        scores.append(
            EvaluationScore(
                label, "AUPR of outliers", *_bootstrapped(area, [len(known), len(unknown)], plan.settings.seed)
            )
        )
    return scores


def _bootstrapped(
    statistic: Callable[[NDArray[np.int64]], float], groups: Sequence[int], seed: int
) -> tuple[float, tuple[float, float] | None]:
    """A statistic of all images, and its interval under resampling of each group of images; None for a single image."""

    def of_each(drawn: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.array([statistic(draw) for draw in drawn])

    interval = bootstrap(of_each, groups, seed, resamples=_RESAMPLES) if min(groups) > 1 else None
    return statistic(np.arange(sum(groups))), interval
