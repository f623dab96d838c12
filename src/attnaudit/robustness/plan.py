"""What an evaluation computes: models, images or sentences, conditions; every unit named by what its rows depend on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import torch

from attnaudit.errors import UsageError
from attnaudit.numerics.digest import digest
from attnaudit.records import json_file
from attnaudit.records.card import ImageCard, NetworkCard, SentenceCard
from attnaudit.records.evaluation import Condition, EvaluatedModel, EvaluationIdentity
from attnaudit.robustness.conditions import TRANSFER
from attnaudit.robustness.examples import Examples, batches
from attnaudit.robustness.image_worker import ImageWorker
from attnaudit.robustness.pixels import PixelModel
from attnaudit.robustness.segmentation import SEGMENTATION_SCHEMA
from attnaudit.robustness.sentences import SentenceExamples
from attnaudit.robustness.table import SCHEMA, VERSION
from attnaudit.robustness.unit import Classifier, EvaluationSettings, EvaluationUnit, Subject, subject_of
from attnaudit.robustness.worker import EvaluationWorker, SentenceWorker
from attnaudit.sources.model import LoadedModel
from attnaudit.sources.segmented import SegmentedImages


@dataclass(frozen=True)
class EvaluationPlan:
    """Everything that is asked for.

    Args:
        models: what is evaluated; their names differ.
        examples: on which images or sentences.
        conditions: under what.
        settings: how.
        twin: makes the images of the condition `transfer`, for models of the same image size.
        checks: whether the attacks are compared for signs of gradient masking.
    """

    models: tuple[LoadedModel, ...]
    examples: Examples | SentenceExamples
    conditions: tuple[Condition, ...]
    settings: EvaluationSettings
    twin: LoadedModel | None = None
    checks: bool = True

    def __post_init__(self) -> None:
        labels = [model.label for model in self.models]
        if repeated := [label for label in labels if labels.count(label) > 1]:
            raise UsageError(f"{repeated[0]} is given twice: models are told apart by their names.")

    @cached_property
    def subjects(self) -> tuple[Subject, ...]:
        """The models, ready."""
        return tuple(subject_of(model, self.examples, self.settings) for model in self.models)

    @property
    def segments(self) -> bool:
        """Whether the images have masks."""
        return isinstance(self.examples.data, SegmentedImages)

    @cached_property
    def twin_classifier(self) -> Classifier | None:
        """The twin, ready; fails unless every model can be shown the images that it makes."""
        if self.twin is None or isinstance(self.examples, SentenceExamples):
            return None
        found = Classifier.of(self.twin, self.examples, self.settings)
        for model in (subject.model for subject in self.subjects):
            sizes = [reader.size for reader in (model, found.model) if isinstance(reader, PixelModel)]
            if len(set(sizes)) > 1:
                own, its = ("×".join(map(str, size)) for size in sizes)
                raise UsageError(
                    f"{model.label} sees {own} pixels and its twin {found.model.label} {its}, so that it cannot be "
                    "shown the twin's images: give --twin a model for images of the same size."
                )
        for subject in self.subjects:
            if isinstance(subject, Classifier) and not torch.equal(subject.labels, found.labels):
                raise UsageError(
                    f"{subject.model.label} and its twin {found.model.label} have other classes, or in another order: "
                    "give --twin a model of the same classes."
                )
        return found

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What a run folder belongs to: more models and conditions may be added to it."""
        own = EvaluationIdentity(self.settings.conventions, self.examples.fingerprint)
        return dict(json_file.plain(own))

    @property
    def description(self) -> dict[str, Any]:
        """Whose results they are, and of what."""
        return {
            "models": [json_file.plain(_described(model)) for model in self.models],
            "twin": None if self.twin is None else self.twin.label,
            "data": self.examples.data.path.name,
            "images": len(self.examples.indices),
            "conditions": [json_file.plain(condition) for condition in self.conditions],
        }

    @property
    def schema(self) -> pa.Schema:
        """The columns of results."""
        return SEGMENTATION_SCHEMA if self.segments else SCHEMA

    @property
    def name(self) -> str:
        """Of the run folder."""
        labels = "+".join(model.label.rpartition("/")[2] for model in self.models[:3])
        return f"robust-{labels}-{self.settings.protocol.value}-{digest(self.identity, labels)[:8]}"

    @cached_property
    def units(self) -> tuple[EvaluationUnit, ...]:
        """Condition by condition, so that corrupted images are made once for all models."""
        return tuple(unit for condition in self.conditions for unit in self._under(condition))

    def worker(self, memory: int) -> EvaluationWorker:
        """The one worker of an evaluation: inputs are prepared once for all models, on one device."""
        if isinstance(self.examples, SentenceExamples):
            return SentenceWorker(self.examples, self.settings)
        return ImageWorker(self.examples, self.settings, self.twin_classifier)

    def recipe(self, unit: EvaluationUnit) -> None:
        """None: the models are in this process, and attacks use its threads."""
        return None

    def source(self, condition: Condition) -> str:
        """A name for what a model is shown under a condition: the images on disk, and who makes others of them."""
        return self._shown(condition)[0]

    def _shown(self, condition: Condition) -> tuple[str, int]:
        """That name, and how many images; read from disk once, whatever the number of models."""
        if condition not in self._read:
            found, count = self.examples.source(condition)
            maker = self.twin_classifier if condition.name == TRANSFER else None
            source = digest(found, None if maker is None else maker.model.fingerprint)
            self._read[condition] = source, count
        return self._read[condition]

    @cached_property
    def _read(self) -> dict[Condition, tuple[str, int]]:
        return {}

    def _under(self, condition: Condition) -> Iterator[EvaluationUnit]:
        source, images = self._shown(condition)
        for subject in self.subjects:
            model = [subject.model.label, subject.model.fingerprint]
            how = json_file.plain(condition), source, json_file.plain(self.settings.conventions)
            # What is right depends on them, and is no part of the images. Where every class is its own output nothing
            # is added, so that older folders keep their parts.
            places = subject.places if isinstance(subject, Classifier) else None
            whole = digest(VERSION, model, *how, *([] if places is None else [places]))
            for batch in batches(images, self.settings.batch):
                yield EvaluationUnit(subject, condition, batch, digest(whole, batch.start))


def _described(model: LoadedModel) -> EvaluatedModel:
    own = model.card
    card = NetworkCard(own.architecture, own.facts) if isinstance(own, ImageCard | SentenceCard) else None
    return EvaluatedModel(model.label, model.fingerprint, model.weights_origin, card)
