"""What models make of a batch under a condition: what images and sentences share, and what is of sentences."""

from __future__ import annotations

import time
import typing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import torch
from torch import Tensor

from attnaudit.numerics.precision import matmul_precision
from attnaudit.numerics.threads import half_the_threads
from attnaudit.records.evaluation import Condition
from attnaudit.records.notes import Notes
from attnaudit.robustness.outcome import Outcome, plain
from attnaudit.robustness.sentences import SentenceExamples, SentenceModel
from attnaudit.robustness.table import rows
from attnaudit.robustness.unit import EvaluationSettings, EvaluationUnit


class EvaluationWorker:
    """Computes units one after the other."""

    def __init__(self, settings: EvaluationSettings) -> None:
        self.settings = settings

    @contextmanager
    def context(self) -> Iterator[None]:
        """Half of the threads, and products in the precision asked for."""
        with half_the_threads(), matmul_precision(self.settings.precision):
            yield

    def compute(self, unit: EvaluationUnit, following: EvaluationUnit | None = None) -> tuple[pa.Table, Notes]:
        """The rows of a batch."""
        inputs, labels, places = self.shown(unit)
        device = unit.classifier.model.device
        inputs, own = inputs.to(device), labels.to(device)
        begin = time.perf_counter()
        outcome = self.outcome(unit, inputs, own)
        if device.type == "cuda":
            torch.cuda.synchronize(device)  # so that the time is the batch's own
        seconds = time.perf_counter() - begin
        label, protocol = unit.classifier.model.label, self.settings.protocol
        return rows(label, protocol, unit.condition, list(places), labels.tolist(), outcome, seconds), Notes()

    def shown(self, unit: EvaluationUnit) -> tuple[Tensor, Tensor, Sequence[int]]:
        """The inputs of the model, their labels, and their places in the data set."""
        raise NotImplementedError

    def outcome(self, unit: EvaluationUnit, inputs: Tensor, labels: Tensor) -> Outcome:
        """What the model makes of them."""
        raise NotImplementedError


class SentenceWorker(EvaluationWorker):
    """Of sentences: the tokens of the last condition stay in memory, by what models see of a sentence."""

    def __init__(self, examples: SentenceExamples, settings: EvaluationSettings) -> None:
        super().__init__(settings)
        self._examples = examples
        self._last: tuple[Condition | None, dict[str, Tensor]] = (None, {})

    def shown(self, unit: EvaluationUnit) -> tuple[Tensor, Tensor, Sequence[int]]:
        """The tokens of a batch."""
        if self._last[0] != unit.condition:
            self._last = unit.condition, {}
        made, model = self._last[1], typing.cast(SentenceModel, unit.classifier.model)
        if model.preprocessing_digest not in made:
            made[model.preprocessing_digest] = self._examples.shown(model, unit.condition, self.settings.seed)
        tokens = made[model.preprocessing_digest][unit.batch]
        return tokens, unit.classifier.labels[unit.batch], self._examples.indices[unit.batch]

    def outcome(self, unit: EvaluationUnit, inputs: Tensor, labels: Tensor) -> Outcome:
        """The predictions."""
        return plain(unit.classifier.model, inputs, labels)
