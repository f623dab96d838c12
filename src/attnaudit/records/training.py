"""A training, finished or still under way, as its folder has it: `run.json`, `history.json` and rows with a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from attnaudit.errors import RunFolderError
from attnaudit.records import json_file
from attnaudit.records.evidence import Evidence
from attnaudit.records.later_fields import added_later
from attnaudit.records.ranges import check_range, check_seed
from attnaudit.records.recipe import AnyRecipe, ImageRecipe, SegmentationRecipe, SentenceRecipe, TextRecipe
from attnaudit.records.run_folder import RunFolder
from attnaudit.records.run_kind import RunKind
from attnaudit.records.schema import OBSERVED

HISTORY = "history.json"
#: The fixed batches a training is monitored on, which name the rows that are means over a batch.
BATCHES = ("train", "test")


@dataclass(frozen=True)
class TrainingIdentity:
    """What a training depends on: `data` are fingerprints of both halves.

    `ranks` is None without a monitor: with one, each process has its share of the inputs that are measured.
    """

    recipe: AnyRecipe
    seed: int
    data: tuple[str, ...]
    ranks: int | None = None
    kind: Literal[RunKind.TRAINING] = RunKind.TRAINING

    def __post_init__(self) -> None:
        check_seed(self.seed)


@dataclass(frozen=True)
class TrainingFile:
    """The `run.json` of a training; `steps` has the part of every step at which the monitor measured.

    `test_examples` is the size of the test half, of which an accuracy is a share.
    """

    format: int
    identity: TrainingIdentity
    attnaudit: str
    versions: Mapping[str, str]
    steps_per_epoch: int
    parts: tuple[str, ...] = added_later(())
    steps: Mapping[str, str] | None = added_later(None)
    test_examples: int | None = added_later(None)

    def __post_init__(self) -> None:
        check_range(1, steps_per_epoch=self.steps_per_epoch, test_examples=self.test_examples)


@dataclass(frozen=True)
class Epoch:
    """What is known at the end of an epoch of any training; `rate` is the last learning rate."""

    epoch: int
    step: int
    rate: float
    train_loss: float
    test_loss: float

    def __post_init__(self) -> None:
        check_range(1, epoch=self.epoch)


@dataclass(frozen=True)
class ClassifierEpoch(Epoch):
    """Of a classifier of anything."""

    test_accuracy: float


@dataclass(frozen=True)
class SentenceEpoch(ClassifierEpoch):
    """Of a classifier of sentences; `average_…` are of the averaged weights."""

    sentences_per_second: float
    average_test_loss: float | None = None
    average_test_accuracy: float | None = None


@dataclass(frozen=True)
class ImageEpoch(ClassifierEpoch):
    """Of a classifier of images; `average_…` are of the averaged weights."""

    images_per_second: float
    average_test_loss: float | None = None
    average_test_accuracy: float | None = None


@dataclass(frozen=True)
class SegmentationEpoch(Epoch):
    """Of a network that segments; classes that no test picture has are missing from means."""

    test_mean_iou: float
    test_mean_accuracy: float
    test_pixel_accuracy: float
    images_per_second: float
    average_test_loss: float | None = None
    average_test_mean_iou: float | None = None
    average_test_mean_accuracy: float | None = None
    average_test_pixel_accuracy: float | None = None


@dataclass(frozen=True)
class TextEpoch(Epoch):
    """Of a language model: perplexities with their intervals, of the test half as it is and with words swapped."""

    test_perplexity: float
    swapped_loss: float
    swapped_perplexity: float
    contexts_per_second: float
    test_perplexity_low: float | None = None
    test_perplexity_high: float | None = None
    swapped_perplexity_low: float | None = None
    swapped_perplexity_high: float | None = None
    average_test_loss: float | None = None
    average_test_perplexity: float | None = None
    average_test_perplexity_low: float | None = None
    average_test_perplexity_high: float | None = None
    average_swapped_loss: float | None = None
    average_swapped_perplexity: float | None = None
    average_swapped_perplexity_low: float | None = None
    average_swapped_perplexity_high: float | None = None


@dataclass(frozen=True)
class ImageHistory:
    """The `history.json` of a classifier of images."""

    epochs: tuple[ImageEpoch, ...]


@dataclass(frozen=True)
class SentenceHistory:
    """The `history.json` of a classifier of sentences."""

    epochs: tuple[SentenceEpoch, ...]


@dataclass(frozen=True)
class SegmentationHistory:
    """The `history.json` of a network that segments."""

    epochs: tuple[SegmentationEpoch, ...]


@dataclass(frozen=True)
class TextHistory:
    """The `history.json` of a language model."""

    epochs: tuple[TextEpoch, ...]


AnyEpoch = ImageEpoch | SegmentationEpoch | TextEpoch | SentenceEpoch
#: What is known of an epoch, and the file of all of them, by kind of recipe.
HISTORIES: Mapping[type[AnyRecipe], tuple[type[AnyEpoch], type[Any]]] = {
    ImageRecipe: (ImageEpoch, ImageHistory),
    SegmentationRecipe: (SegmentationEpoch, SegmentationHistory),
    TextRecipe: (TextEpoch, TextHistory),
    SentenceRecipe: (SentenceEpoch, SentenceHistory),
}


@dataclass(frozen=True)
class TrainingRun:
    """One training: what was trained, how it went so far, and what its monitor measured."""

    path: Path
    settings: TrainingFile
    history: tuple[AnyEpoch, ...]

    @property
    def recipe(self) -> AnyRecipe:
        """What it was trained by."""
        return self.settings.identity.recipe

    @property
    def seed(self) -> int:
        """Of every random choice."""
        return self.settings.identity.seed

    @property
    def data(self) -> tuple[str, ...]:
        """Fingerprints of both halves of the data."""
        return self.settings.identity.data

    @property
    def name(self) -> str:
        """Recipe and seed."""
        return f"{self.recipe.name}, seed {self.seed}"

    @property
    def accuracies(self) -> tuple[float, ...]:
        """On the test half after every epoch; none of what does not classify."""
        return tuple(epoch.test_accuracy for epoch in self.history if isinstance(epoch, ClassifierEpoch))

    @property
    def is_monitored(self) -> bool:
        """Whether the recipe has a monitor, so that there are rows."""
        return self.recipe.monitored_inputs > 0

    def epoch_at(self, step: int) -> float:
        """Which epoch a step belongs to."""
        return step / self.settings.steps_per_epoch

    @cached_property
    def rows(self) -> Evidence:
        """Everything that the monitor has measured so far.

        Raises:
            RunFolderError: that is nothing, or a part is missing or damaged.
        """
        found = RunFolder(self.path).parts.evidence(sorted(self.settings.parts))
        if not len(found) and not self.is_monitored:
            raise RunFolderError(
                f"{self.path} was trained without a monitor, so it has no measurements: give a training that has one."
            )
        if not len(found):
            raise RunFolderError(f"{self.path} has no measurements of its training yet: repeat its command to resume.")
        return found

    @cached_property
    def batches(self) -> tuple[str, ...]:
        """Those of `BATCHES` that were measured.

        Raises:
            RunFolderError: there are none.
        """
        found = {name for (name,) in self.rows.combinations("input")}
        if batches := tuple(name for name in BATCHES if name in found):
            return batches
        raise RunFolderError(
            f"{self.path} has no rows of a batch named {' or '.join(BATCHES)}, only of {', '.join(sorted(found))[:80]}."
        )

    def batch_means(self, measures: Sequence[str]) -> pa.Table:
        """Rows of these measures that are means over a whole batch: one per step, batch, layer and head.

        Raises:
            RunFolderError: one of them was not measured.
        """
        columns = ("step", "input", "layer", "head", "dim", "measure", "value")
        table = self.rows.where(*columns, input=self.batches, reference=OBSERVED, measure=measures)
        if missing := sorted({*measures} - {*table["measure"].unique().to_pylist()}):
            raise RunFolderError(f"{self.path} has no rows of {', '.join(missing)}: train again to measure them.")
        return table


def open_training(path: Path) -> TrainingRun:
    """Open the folder of a training, finished or not.

    Raises:
        RunFolderError: it is not the folder of a training, or a file of it is damaged.
    """
    settings = RunFolder(path).settings(TrainingFile, RunKind.TRAINING)
    _, kind = HISTORIES[type(settings.identity.recipe)]
    try:
        epochs = json_file.read(kind, path / HISTORY, "the history of a training").epochs
    except FileNotFoundError:  # no epoch is finished yet
        epochs = ()
    return TrainingRun(path, settings, epochs)


def open_trainings(paths: Sequence[Path]) -> list[TrainingRun]:
    """The trainings of several folders."""
    return [open_training(path) for path in paths]
