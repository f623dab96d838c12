"""The unit of work of an evaluation: a model, a condition and a batch of images or sentences."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Int64
from torch import Tensor

from attnaudit.errors import InputError
from attnaudit.protocol import Protocol
from attnaudit.records.evaluation import Condition, EvaluationConventions
from attnaudit.robustness.examples import Examples
from attnaudit.robustness.pixels import PixelModel
from attnaudit.robustness.segmentation import Segmenter
from attnaudit.robustness.sentences import SentenceExamples, SentenceModel
from attnaudit.sources.class_outputs import outputs_of
from attnaudit.sources.labelled import LabelledImages
from attnaudit.sources.model import LoadedModel


@dataclass(frozen=True)
class EvaluationSettings:
    """How to compute; `masked` lets only the classes of the data count, as ImageNet-A, -R and -O are evaluated.

    `compiled` networks differ by rounding only, which is not part of what results depend on.
    """

    seed: int = 0
    protocol: Protocol = Protocol.EXACT
    precision: str = "fp32"
    masked: bool = False
    device: str = "cpu"
    batch: int = 64
    compiled: bool = False

    @property
    def conventions(self) -> EvaluationConventions:
        """What results depend on."""
        return EvaluationConventions(self.seed, self.protocol, self.precision, self.masked, self.batch)


@dataclass(frozen=True)
class Classifier:
    """A model, and the outputs that belong to the labels of the images or sentences.

    `places` are the outputs of the classes; None if these are the outputs one by one.
    """

    model: PixelModel | SentenceModel
    labels: Int64[Tensor, "examples"]
    places: tuple[int, ...] | None = None

    @staticmethod
    def of(loaded: LoadedModel, examples: Examples, settings: EvaluationSettings) -> Classifier:
        """A classifier of images on its device; fails unless its classes are those of the images."""
        model = pixel_model(loaded, settings)
        if model.segments:
            raise InputError(f"{model.label} segments pictures, and the others classify: give models of one kind.")
        if not isinstance(examples.data, LabelledImages) or not isinstance(examples.selected, LabelledImages):
            raise InputError(f"{model.label} is a classifier: {examples.data.path} has masks instead of labels.")
        found = outputs_of(examples.data, model.outputs, model.label, examples.classes, model.class_names)
        own, places = examples.selected.labels, tuple(found.tolist())
        moved = None if places == tuple(range(model.outputs)) else places
        if not settings.masked:
            return Classifier(model, found[own], moved)
        return Classifier(pixel_model(loaded, settings, found), own, moved)


def pixel_model(
    loaded: LoadedModel, settings: EvaluationSettings, mask: Int64[Tensor, "classes"] | None = None
) -> PixelModel:
    """The network as the settings say it is called."""
    return PixelModel(loaded, settings.device, settings.precision, mask, compiled=settings.compiled)


#: What is evaluated: a model, and what is right to say of the images.
Subject = Classifier | Segmenter


def subject_of(loaded: LoadedModel, examples: Examples | SentenceExamples, settings: EvaluationSettings) -> Subject:
    """The model on its device, as what it is."""
    if isinstance(examples, SentenceExamples):
        reader = SentenceModel(loaded, settings.device, settings.precision)
        examples.check(reader)
        return Classifier(reader, examples.selected.labels)
    model = pixel_model(loaded, settings)
    return Segmenter.of(model, examples) if model.segments else Classifier.of(loaded, examples, settings)


@dataclass(frozen=True)
class EvaluationUnit:
    """A batch of images or sentences under one condition."""

    subject: Subject
    condition: Condition
    batch: slice
    key: str

    @property
    def label(self) -> str:
        """The model and the condition."""
        return f"{self.subject.model.label}: {self.condition.words}"

    @property
    def images(self) -> int:
        """How many there are, one row each."""
        return int(self.batch.stop - self.batch.start)
