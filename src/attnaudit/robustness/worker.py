"""What models make of a batch under a condition: what images and sentences share, and what is of sentences."""

from __future__ import annotations

import time
import typing
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import torch
from torch import Tensor

from attnaudit.numerics.compiling import compile_errors
from attnaudit.numerics.precision import matmul_precision
from attnaudit.numerics.threads import half_the_threads
from attnaudit.records.evaluation import Condition
from attnaudit.records.notes import Notes
from attnaudit.robustness.outcome import plain
from attnaudit.robustness.sentences import SentenceExamples, SentenceModel
from attnaudit.robustness.table import rows
from attnaudit.robustness.unit import Classifier, EvaluationSettings, EvaluationUnit


class EvaluationWorker:
    """Computes units one after the other."""

    def __init__(self, settings: EvaluationSettings) -> None:
        self._settings = settings

    @contextmanager
    def context(self) -> Iterator[None]:
        """Half of the threads, and products in the precision asked for.

        Raises:
            AttnAuditError: a network is to be compiled, and cannot be.
        """
        with half_the_threads(), matmul_precision(self._settings.precision), compile_errors():
            yield

    def compute(self, unit: EvaluationUnit, following: EvaluationUnit | None = None) -> tuple[pa.Table, Notes]:
        """The rows of a batch."""
        raise NotImplementedError


def seconds_since(begin: float, device: torch.device) -> float:
    """Since then; the device has finished, so that the time is the batch's own."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - begin


class SentenceWorker(EvaluationWorker):
    """Of sentences: the tokens of the last condition stay in memory, by what models see of a sentence."""

    def __init__(self, examples: SentenceExamples, settings: EvaluationSettings) -> None:
        super().__init__(settings)
        self._examples = examples
        self._last: tuple[Condition | None, dict[str, Tensor]] = (None, {})

    def compute(self, unit: EvaluationUnit, following: EvaluationUnit | None = None) -> tuple[pa.Table, Notes]:
        """The rows of a batch."""
        subject = typing.cast(Classifier, unit.subject)
        model = typing.cast(SentenceModel, subject.model)
        labels, places = subject.labels[unit.batch], self._examples.indices[unit.batch]
        tokens = self._tokens(model, unit.condition)[unit.batch].to(model.device)
        begin = time.perf_counter()
        outcome = plain(model, tokens, labels.to(model.device), unit.condition)
        about = model.label, self._settings.protocol, unit.condition
        return rows(*about, list(places), labels.tolist(), outcome, seconds_since(begin, model.device)), Notes()

    def _tokens(self, model: SentenceModel, condition: Condition) -> Tensor:
        """What the model sees under a condition; made once for all batches and models that see the same."""
        if self._last[0] != condition:
            self._last = condition, {}
        made = self._last[1]
        if model.preprocessing_digest not in made:
            made[model.preprocessing_digest] = self._examples.shown(model, condition, self._settings.seed)
        return made[model.preprocessing_digest]
