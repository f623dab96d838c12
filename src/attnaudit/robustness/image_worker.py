"""What the models make of a batch of images under a condition, an attack included."""

from __future__ import annotations

import typing
from collections.abc import Sequence

import torch
from torch import Tensor

from attnaudit.numerics.randomness import derived_seed
from attnaudit.records.evaluation import Condition, ConditionKind
from attnaudit.robustness.conditions import CLEAN, GRADIENT, OUTLIERS, TRANSFER
from attnaudit.robustness.examples import Examples, model_pixels
from attnaudit.robustness.outcome import Outcome, along_gradient, attacked, plain
from attnaudit.robustness.pixels import PixelModel
from attnaudit.robustness.unit import Classifier, EvaluationSettings, EvaluationUnit
from attnaudit.robustness.worker import EvaluationWorker


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

    def shown(self, unit: EvaluationUnit) -> tuple[Tensor, Tensor, Sequence[int]]:
        """Bytes of pixels; of outliers the labels mean nothing."""
        pixels = self._pixels(_pixel_model(unit.classifier), unit.condition)[unit.batch]
        if unit.condition == OUTLIERS:
            return pixels, torch.zeros(len(pixels), dtype=torch.int64), range(unit.batch.start, unit.batch.stop)
        return pixels, unit.classifier.labels[unit.batch], self._examples.indices[unit.batch]

    def outcome(self, unit: EvaluationUnit, inputs: Tensor, labels: Tensor) -> Outcome:
        """The predictions, after an attack if the condition is one."""
        model, condition, settings = _pixel_model(unit.classifier), unit.condition, self.settings
        pixels = inputs.float() / 255
        parts = (settings.seed, condition.name, str(condition.strength), unit.batch.start)
        generator = torch.Generator(model.device).manual_seed(derived_seed(*parts))
        if condition == GRADIENT:
            return along_gradient(model, pixels, labels, generator)
        if condition.kind not in (ConditionKind.ATTACK, ConditionKind.CHECK):
            return plain(model, pixels, labels)
        twin = self._twin if condition.name == TRANSFER else None
        maker = model if twin is None else _pixel_model(twin)
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
            made[model.preprocessing_digest] = self._examples.corrupted(model, clean, condition, self.settings.seed)
        return made[model.preprocessing_digest]

    def _clean_pixels(self, model: PixelModel) -> Tensor:
        if model.preprocessing_digest not in self._clean:
            self._clean[model.preprocessing_digest] = self._examples.clean(model)
        return self._clean[model.preprocessing_digest]


def _pixel_model(classifier: Classifier) -> PixelModel:
    """The model of a classifier of images."""
    return typing.cast(PixelModel, classifier.model)
