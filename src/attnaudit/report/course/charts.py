"""Which charts a course has: scores of each batch, J, norms, and how well a training does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from attnaudit.records.training import ClassifierEpoch, Epoch, SegmentationEpoch, TextEpoch
from attnaudit.report.course.chart import Chart, Curve, Point
from attnaudit.training.course import Course
from attnaudit.training.monitor_log import ALIGNMENT, SINGULAR

#: Names that fit beside a curve.
SHORT = {
    "column_cosine_matched": "columns (cosine)",
    "value_subspace_overlap": "spans",
    "procrustes": "Procrustes",
    "projection_alignment_matched": "outputs, in order",
    "projection_alignment_rotated": "outputs, rotated",
    "ksvd_left_overlap": "left singular",
    "ksvd_right_overlap": "right singular",
    "ksvd_dual_residual": "dual residual",
}
_NORMS = {"output_norm2": "‖h‖²", "phi_norm2_median": "‖φ(q)‖²"}
AnyEpoch = TypeVar("AnyEpoch", bound=Epoch)
_SCALE = ((0.0, "chance"), (1.0, "claim"))


def charts(course: Course) -> list[Chart]:
    """All that have something to show."""
    found = [*_performance(course), *(_scores(course, batch) for batch in course.batches), _error(course)]
    return [chart for chart in (*found, _norms(course)) if not chart.is_empty]


def scored_inputs(course: Course) -> int:
    """The most inputs of a batch that any score is based on."""
    batches = (batch for reading in course.readings for batch in reading.batches.values())
    return max((score.inputs for batch in batches for score in batch.scores.values()), default=0)


def _scores(course: Course, batch: str) -> Chart:
    curves = tuple(
        Curve(SHORT[measure], _score_points(course, batch, measure), place)
        for place, measure in enumerate((*ALIGNMENT, *SINGULAR))
    )
    caption = "Means over heads; 0 is a random projection of the same inputs, 1 is what the theory predicts."
    return Chart(f"Scores, {batch}", caption, curves, _SCALE)


def _score_points(course: Course, batch: str, measure: str) -> tuple[Point, ...]:
    found = ((reading.step, reading.batches[batch].scores.get(measure)) for reading in course.readings)
    scores = ((step, own.score) for step, own in found if own is not None)
    return tuple((step, score.mean, score.interval) for step, score in scores if score is not None)


def _error(course: Course) -> Chart:
    curves = tuple(
        Curve(batch, _means(course, batch, "projection_error_mae"), place, dashed=place > 0)
        for place, batch in enumerate(course.batches)
    )
    caption = "The mean of |‖φ(q)‖² - ‖h‖²| over tokens, heads and layers. Its size is a matter of units."
    return Chart("Projection error J", caption, curves, may_be_logarithmic=True)


def _norms(course: Course) -> Chart:
    curves = tuple(
        Curve(f"{words}, {batch}", _means(course, batch, measure), place, dashed=number > 0)
        for place, (measure, words) in enumerate(_NORMS.items())
        for number, batch in enumerate(course.batches)
    )
    caption = "Of outputs, and of the queries' features (the median over tokens). A projection has ‖h‖² ≤ ‖φ(q)‖²."
    return Chart("Norms", caption, curves, may_be_logarithmic=True)


def _means(course: Course, batch: str, measure: str) -> tuple[Point, ...]:
    found = ((reading.step, reading.batches[batch].means.get(measure)) for reading in course.readings)
    return tuple((step, mean, None) for step, mean in found if mean is not None)


def _performance(course: Course) -> Iterator[Chart]:
    """Of a training: accuracy, mIoU or perplexity, and losses."""
    classifiers = [epoch for epoch in course.history if isinstance(epoch, ClassifierEpoch)]
    masks = [epoch for epoch in course.history if isinstance(epoch, SegmentationEpoch)]
    texts = [epoch for epoch in course.history if isinstance(epoch, TextEpoch)]
    accuracy = Curve("accuracy", _epochs(classifiers, lambda epoch: epoch.test_accuracy))
    yield Chart("Test accuracy", "After every epoch.", (accuracy,))
    segmented = (
        Curve("mIoU", _epochs(masks, lambda epoch: epoch.test_mean_iou)),
        Curve("mean accuracy", _epochs(masks, lambda epoch: epoch.test_mean_accuracy), 1),
        Curve("pixel accuracy", _epochs(masks, lambda epoch: epoch.test_pixel_accuracy), 2),
    )
    yield Chart("Test masks", "After every epoch; unlabelled pixels are not counted.", segmented)
    perplexities = (
        Curve("as it is", _epochs(texts, lambda epoch: epoch.test_perplexity)),
        Curve("words swapped", _epochs(texts, lambda epoch: epoch.swapped_perplexity), 1),
    )
    yield Chart("Test perplexity", "After every epoch.", perplexities, may_be_logarithmic=True)
    losses = (
        Curve("training", _epochs(course.history, lambda epoch: epoch.train_loss)),
        Curve("test", _epochs(course.history, lambda epoch: epoch.test_loss), 1, dashed=True),
    )
    yield Chart("Loss", "After every epoch; the training loss includes augmentation.", losses)


def _epochs(epochs: Sequence[AnyEpoch], value: Callable[[AnyEpoch], float]) -> tuple[Point, ...]:
    return tuple((epoch.step, value(epoch), None) for epoch in epochs)
