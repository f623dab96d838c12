"""Networks that segment: the pixels of a picture that they get right, by class, under a condition.

A corruption changes the picture and never the mask, as in ADE20K-C and Cityscapes-C (Kamann & Rother 2020). Most of
them leave every pixel where it is. Elastic transform, glass, motion and zoom blur and pixelate move or smear content by
a few pixels: the mask of the clean picture counts there, too, so that some of the loss at edges is not the network's.
It is the same for all networks, which are compared with each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from jaxtyping import Float, UInt8
from torch import Tensor

from attnaudit.display import counted
from attnaudit.errors import InputError
from attnaudit.protocol import Protocol
from attnaudit.records.evaluation import Accuracy, Condition, EvaluationScore, Quantity
from attnaudit.robustness.conditions import CLEAN
from attnaudit.robustness.examples import Examples
from attnaudit.robustness.outcome import finite_logits
from attnaudit.robustness.pixels import PixelModel
from attnaudit.robustness.table import NAME, Results
from attnaudit.sources.class_outputs import may_be_same
from attnaudit.sources.model import LoadedModel
from attnaudit.sources.segmented import UNLABELLED, SegmentedImages
from attnaudit.statistics.segmentation import (
    ClassCounts,
    confusion_matrices,
    mean_accuracy,
    mean_iou,
    pixel_accuracy,
)

_COUNTS = ("right", "true", "predicted")
SEGMENTATION_SCHEMA = pa.schema(
    [
        pa.field("model", NAME),
        pa.field("protocol", NAME),
        pa.field("kind", NAME),  # clean, corruption
        pa.field("name", NAME),
        pa.field("strength", pa.float64()),  # severity of a corruption
        pa.field("image", pa.int32()),  # its place in the data set
        *(pa.field(name, pa.list_(pa.int64())) for name in _COUNTS),  # pixels by class, see ClassCounts
        pa.field("seconds", pa.float32()),  # its share of the batch's time
    ]
)
#: The numbers of a segmentation, the one that decides first.
_QUANTITIES = {
    Quantity.MEAN_IOU: mean_iou,
    Quantity.MEAN_ACCURACY: mean_accuracy,
    Quantity.PIXEL_ACCURACY: pixel_accuracy,
}


@dataclass(frozen=True)
class Segmenter:
    """A model, and the masks of the pictures that it is shown."""

    model: PixelModel
    masks: UInt8[Tensor, "pictures height width"]

    @staticmethod
    def of(model: PixelModel, examples: Examples) -> Segmenter:
        """The model with the masks cut to what it sees."""
        chosen = examples.selected
        if not isinstance(chosen, SegmentedImages) or chosen.classes != model.outputs:
            raise InputError(
                f"{model.label} segments {model.outputs} classes, but {chosen.path} has no masks for them."
            )
        if examples.classes not in (None, model.outputs):
            raise InputError(
                f"{model.label} segments {model.outputs} classes, but {chosen.path} was made from masks of "
                f"{examples.classes}: give pictures with masks of the model's classes."
            )
        if not may_be_same(chosen.names, model.class_names):
            raise InputError(
                f"{chosen.path} has other classes than {model.label}, or in another order: give masks "
                "numbered like those it was trained on."
            )
        masks = chosen.mask_pixels(*model.size)
        if bool((masks == UNLABELLED).all()):
            raise InputError(
                f"No pixel of the {counted(len(chosen), 'mask')} of {chosen.path} has a class, as {model.label} sees "
                "them: give masks that name classes, or a larger --limit."
            )
        return Segmenter(model, masks)

    def counts(
        self, pixels: Float[Tensor, "pictures 3 height width"], batch: slice, condition: Condition
    ) -> ClassCounts:
        """What it makes of the pictures of a batch under a condition."""
        predicted = finite_logits(self.model, pixels, condition).argmax(dim=-1)
        return ClassCounts.of(confusion_matrices(predicted, self.masks[batch].to(predicted.device), self.model.outputs))


def segmentation_rows(
    model: str, protocol: Protocol, condition: Condition, places: Sequence[int], counts: ClassCounts, seconds: float
) -> pa.Table:
    """The rows of a batch."""
    number = len(places)
    columns = {
        "model": [model] * number,
        "protocol": [protocol.value] * number,
        "kind": [condition.kind.value] * number,
        "name": [condition.name] * number,
        "strength": [condition.strength] * number,
        "image": list(places),
        **{name: getattr(counts, name).tolist() for name in _COUNTS},
        "seconds": [seconds / number] * number,
    }
    return pa.table(columns, schema=SEGMENTATION_SCHEMA)


def segmentation_accuracies(
    results: Results, model: LoadedModel, condition: Condition, source: str, seed: int
) -> list[Accuracy]:
    """mIoU, mean accuracy and pixel accuracy over all pictures, with bootstrap intervals over pictures."""
    rows = results.under(model.label, condition)
    counts = _counts(rows)
    seconds = float(rows["seconds"].to_numpy().sum())
    return [
        Accuracy(
            model.label,
            condition,
            source,
            len(rows),
            None,
            float(value(counts.total)[0]),
            counts.interval(value, seed),
            None,
            seconds,
            quantity,
            counts.missing,
        )
        for quantity, value in _QUANTITIES.items()
    ]


def class_scores(
    results: Results, model: LoadedModel, names: Sequence[str] | None, seed: int
) -> Iterator[EvaluationScore]:
    """The IoU of every class that clean pictures have, with bootstrap intervals over pictures."""
    counts = _counts(results.under(model.label, CLEAN))
    for number in np.flatnonzero(counts.true.sum(axis=0)).tolist():
        own = counts.of_class(number)
        name = f"class {number}" if names is None else names[number]
        yield EvaluationScore(
            model.label, f"IoU of {name}", float(mean_iou(own.total)[0]), own.interval(mean_iou, seed)
        )


def _counts(rows: pa.Table) -> ClassCounts:
    return ClassCounts(*(np.stack(rows[name].to_pylist()) for name in _COUNTS))
