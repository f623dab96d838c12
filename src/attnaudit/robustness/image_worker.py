"""What the models make of a batch of images under a condition, an attack included."""

from __future__ import annotations

import time
import typing

import pyarrow as pa
import torch
from torch import Tensor

from attnaudit.numerics.randomness import derived_seed
from attnaudit.records.evaluation import Condition, ConditionKind
from attnaudit.records.notes import Notes
from attnaudit.robustness.conditions import CLEAN, GRADIENT, OUTLIERS, TRANSFER
from attnaudit.robustness.examples import Examples, model_pixels
from attnaudit.robustness.outcome import Outcome, along_gradient, attacked, plain
from attnaudit.robustness.pixels import PixelModel
from attnaudit.robustness.segmentation import Segmenter, segmentation_rows
from attnaudit.robustness.table import rows
from attnaudit.robustness.unit import Classifier, EvaluationSettings, EvaluationUnit
from attnaudit.robustness.worker import EvaluationWorker, seconds_since


class ImageWorker(EvaluationWorker):
    """Of images: those of the last condition and the clean ones stay in memory, by what models see of an image.

    Args:
        examples: the images.
        settings: how to compute.
        twin: makes the images of the condition `transfer`.
    """

    def __init__(self, examples: Examples, settings: EvaluationSettings, twin: Classifier | None) -> None:
        super().__init__(settings)
        self._examples, self._twin = examples, twin
        self._clean: dict[str, Tensor] = {}
        self._changed: tuple[Condition, dict[str, Tensor]] = (CLEAN, {})

    def compute(self, unit: EvaluationUnit, following: EvaluationUnit | None = None) -> tuple[pa.Table, Notes]:
        """The rows of a batch."""
        subject, condition, model = unit.subject, unit.condition, typing.cast(PixelModel, unit.subject.model)
        pixels = self._pixels(model, condition)[unit.batch].to(model.device).float() / 255
        places, about = self._examples.indices[unit.batch], (model.label, self._settings.protocol, condition)
        begin = time.perf_counter()
        if isinstance(subject, Segmenter):
            counts = subject.counts(pixels, unit.batch, condition)
            return segmentation_rows(*about, places, counts, seconds_since(begin, model.device)), Notes()
        outliers = condition == OUTLIERS
        labels = torch.zeros(len(pixels), dtype=torch.int64) if outliers else subject.labels[unit.batch]
        outcome = self._outcome(model, condition, unit.batch.start, pixels, labels.to(model.device))
        seconds = seconds_since(begin, model.device)
        shown = range(unit.batch.start, unit.batch.stop) if outliers else places
        return rows(*about, list(shown), labels.tolist(), outcome, seconds), Notes()

    def _outcome(self, model: PixelModel, condition: Condition, first: int, pixels: Tensor, labels: Tensor) -> Outcome:
        settings = self._settings
        parts = (settings.seed, condition.name, str(condition.strength), first)
        generator = torch.Generator(model.device).manual_seed(derived_seed(*parts))
        if condition == GRADIENT:
            return along_gradient(model, pixels, labels, generator)
        if condition.kind not in (ConditionKind.ATTACK, ConditionKind.CHECK):
            return plain(model, pixels, labels, condition)
        twin = self._twin if condition.name == TRANSFER else None
        maker = model if twin is None else typing.cast(PixelModel, twin.model)
        return attacked(model, maker, condition, pixels, labels, settings.protocol, generator, settings.batch)

    def _pixels(self, model: PixelModel, condition: Condition) -> Tensor:
        """What the model sees under a condition, before an attack; made once for all batches."""
        if condition.kind not in (ConditionKind.CORRUPTION, ConditionKind.OUTLIERS):
            return self._clean_pixels(model)
        if self._changed[0] != condition:
            self._changed = condition, {}
        made = self._changed[1]
        if model.preprocessing_digest not in made and condition == OUTLIERS:
            made[model.preprocessing_digest] = model_pixels(model, self._examples.images(condition))
        elif model.preprocessing_digest not in made:
            clean = self._clean_pixels(model)
            made[model.preprocessing_digest] = self._examples.corrupted(model, clean, condition, self._settings.seed)
        return made[model.preprocessing_digest]

    def _clean_pixels(self, model: PixelModel) -> Tensor:
        if model.preprocessing_digest not in self._clean:
            self._clean[model.preprocessing_digest] = self._examples.clean(model)
        return self._clean[model.preprocessing_digest]
