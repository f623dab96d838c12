"""What the models make of a batch of images under a condition."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import torch
from torch import Tensor

from attnaudit.numerics.precision import matmul_precision
from attnaudit.numerics.randomness import derived_seed
from attnaudit.numerics.threads import half_the_threads
from attnaudit.records.evaluation import Condition, ConditionKind
from attnaudit.records.notes import Notes
from attnaudit.robustness.conditions import CLEAN, GRADIENT, OUTLIERS, TRANSFER
from attnaudit.robustness.examples import Examples, model_pixels
from attnaudit.robustness.outcome import Outcome, along_gradient, attacked, plain
from attnaudit.robustness.pixels import PixelModel
from attnaudit.robustness.segmentation import Segmenter, segmentation_rows
from attnaudit.robustness.table import rows
from attnaudit.robustness.unit import Classifier, EvaluationSettings, EvaluationUnit


class EvaluationWorker:
    """Computes units one after the other; images of the last condition and the clean ones stay in memory.

    They are kept by what models see of an image, which for models of one kind is the same.

    Args:
        examples: the images.
        settings: how to compute.
        twin: makes the images of the condition `transfer`.
    """

    def __init__(self, examples: Examples, settings: EvaluationSettings, twin: Classifier | None) -> None:
        self._examples, self._settings, self._twin = examples, settings, twin
        self._clean: dict[str, Tensor] = {}
        self._changed: tuple[Condition, dict[str, Tensor]] = (CLEAN, {})

    @contextmanager
    def context(self) -> Iterator[None]:
        """Half of the threads, and products in the precision asked for."""
        with half_the_threads(), matmul_precision(self._settings.precision):
            yield

    def compute(self, unit: EvaluationUnit, following: EvaluationUnit | None = None) -> tuple[pa.Table, Notes]:
        """The rows of a batch."""
        subject, condition, model = unit.subject, unit.condition, unit.subject.model
        pixels = self._pixels(model, condition)[unit.batch].to(model.device).float() / 255
        places, about = self._examples.indices[unit.batch], (model.label, self._settings.protocol, condition)
        begin = time.perf_counter()
        if isinstance(subject, Segmenter):
            counts = subject.counts(pixels, unit.batch)
            return segmentation_rows(*about, places, counts, self._seconds(model, begin)), Notes()
        outliers = condition == OUTLIERS
        labels = torch.zeros(len(pixels), dtype=torch.int64) if outliers else subject.labels[unit.batch]
        outcome = self._outcome(model, condition, unit.batch.start, pixels, labels.to(model.device))
        seconds = self._seconds(model, begin)
        shown = range(unit.batch.start, unit.batch.stop) if outliers else places
        return rows(*about, list(shown), labels.tolist(), outcome, seconds), Notes()

    def _seconds(self, model: PixelModel, begin: float) -> float:
        """Since then; the device has finished, so that the time is the batch's own."""
        if model.device.type == "cuda":
            torch.cuda.synchronize(model.device)
        return time.perf_counter() - begin

    def _outcome(self, model: PixelModel, condition: Condition, first: int, pixels: Tensor, labels: Tensor) -> Outcome:
        settings = self._settings
        parts = (settings.seed, condition.name, str(condition.strength), first)
        generator = torch.Generator(model.device).manual_seed(derived_seed(*parts))
        if condition == GRADIENT:
            return along_gradient(model, pixels, labels, generator)
        if condition.kind not in (ConditionKind.ATTACK, ConditionKind.CHECK):
            return plain(model, pixels, labels)
        twin = self._twin if condition.name == TRANSFER else None
        maker = model if twin is None else twin.model
        return attacked(model, maker, condition, pixels, labels, settings.protocol, generator)

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
