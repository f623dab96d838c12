"""What a training learns from which data: images, pictures with masks, text, sentences. The loop does not know."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping, Sized
from pathlib import Path
from typing import Any, cast

from torch import Tensor, nn

from attnaudit.display import counted
from attnaudit.errors import InputError, UsageError
from attnaudit.records.card import Card
from attnaudit.records.recipe import AnyRecipe, ImageRecipe, Recipe, SegmentationRecipe, SentenceRecipe, TextRecipe
from attnaudit.sources.corpora import Corpus, training_and_test_text
from attnaudit.sources.labelled import LabelledImages, training_and_test
from attnaudit.sources.segmented import SegmentedImages, training_and_test_masks
from attnaudit.sources.sentences import LabelledSentences, training_and_test_sentences
from attnaudit.training.batching import Batch, Layout
from attnaudit.training.image_task import ImageTask
from attnaudit.training.segmentation_task import SegmentationTask
from attnaudit.training.sentence_task import SentenceTask
from attnaudit.training.text_task import TextTask

#: The training half and the test half of a data set.
TrainTestData = (
    tuple[LabelledImages, LabelledImages]
    | tuple[SegmentedImages, SegmentedImages]
    | tuple[Corpus, Corpus]
    | tuple[LabelledSentences, LabelledSentences]
)


class Feed(typing.Protocol):
    """The data of a task on a device."""

    def training(self, epoch: int, start: int) -> Iterator[Batch]:
        """This rank's share of the batches of an epoch, from number `start` on."""

    def prepare(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The inputs of the model and their targets; random choices come from the global generators."""

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """The model's scores on the test half, by name; its mode is restored afterwards."""

    def monitor_inputs(self, batch: int, count: int) -> dict[str, Tensor]:
        """The first `count` inputs of a training batch of the first epoch (`train`), and of the test half (`test`)."""


class Task(typing.Protocol):
    """A recipe together with its data."""

    @property
    def recipe(self) -> AnyRecipe:
        """The recipe, completed by what only the data knows, such as the number of classes."""

    @property
    def data_summary(self) -> str:
        """A few words on the data."""

    @property
    def examples(self) -> int:
        """The number of training examples."""

    @property
    def test(self) -> Sized:
        """The test half, of which an accuracy is a share."""

    @property
    def fingerprints(self) -> list[str]:
        """Hashes of both halves."""

    @property
    def facts(self) -> dict[str, Any]:
        """Facts about the data for the card."""

    def build(self, seed: int) -> nn.Module:
        """The untrained model."""

    def feed(self, layout: Layout, device: str, workers: int) -> Feed:
        """The data, on a device."""

    def describe(self, record: Mapping[str, float]) -> str:
        """The scores of an epoch in words."""

    def card(self, facts: Mapping[str, Any]) -> Card:
        """The card of the trained model."""


def read_data(recipe: Recipe, place: Path, limit: int | None = None) -> TrainTestData:
    """The data of a recipe, from a folder or, for text, a file; of each half `limit` examples or lines, or all.

    Raises:
        InputError: it is missing, or cannot be learned from.
    """
    if isinstance(recipe, TextRecipe):
        train_text, test_text = training_and_test_text(place)
        return train_text.first(limit), test_text.first(limit)
    if isinstance(recipe, SentenceRecipe):
        named, tested = (half.evenly_spaced(limit) for half in training_and_test_sentences(place))
        _check_classes(named, recipe, limit)
        return named, tested
    if isinstance(recipe, SegmentationRecipe):
        masked = training_and_test_masks(place, recipe.model.classes)
        pictures, others = (half.evenly_spaced(limit) for half in masked)
        for name, half in (("training", pictures), ("test", others)):
            if not half.has_labels(*recipe.model.image_shape):
                raise InputError(
                    f"No pixel of the {counted(len(half), f'{name} mask')} of {half.path} has a class, as the network "
                    "sees them: give masks that name classes, or a larger --limit."
                )
        return pictures, others
    train, test = (half.evenly_spaced(limit) for half in training_and_test(place))
    _check_classes(train, recipe, limit)
    return train, test


def _check_classes(train: LabelledImages | LabelledSentences, recipe: Recipe, limit: int | None) -> None:
    if len(set(train.labels.tolist())) < 2:
        raise InputError(
            f"--limit {limit} takes {recipe.examples} of only one class from {train.path}: use a larger limit."
        )


def make_task(recipe: Recipe, data: TrainTestData) -> Task:
    """The task of a recipe and its data.

    Raises:
        UsageError: the recipe is for another kind of data.
    """
    train, test = data
    if isinstance(recipe, TextRecipe) and isinstance(train, Corpus) and isinstance(test, Corpus):
        return TextTask.from_data(recipe, train, test)
    if isinstance(recipe, ImageRecipe) and isinstance(train, LabelledImages) and isinstance(test, LabelledImages):
        return ImageTask.from_data(recipe, train, test)
    if isinstance(recipe, SegmentationRecipe) and isinstance(train, SegmentedImages):
        return SegmentationTask(recipe, train, cast(SegmentedImages, test))
    if isinstance(recipe, SentenceRecipe) and isinstance(train, LabelledSentences):
        return SentenceTask.from_data(recipe, train, cast(LabelledSentences, test))
    raise UsageError(f"Recipe {recipe.name} needs data of {recipe.examples}, got a {type(train).__name__}.")
