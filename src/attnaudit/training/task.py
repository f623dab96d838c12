"""What is learned from what: all in which a training of images differs from one of text. The loop knows neither."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from attnaudit.errors import InputError, UsageError
from attnaudit.records.card import ImageCard, TextCard
from attnaudit.records.recipe import ImageRecipe, Recipe, TextRecipe
from attnaudit.sources.corpora import Corpus, training_and_test_text
from attnaudit.sources.labelled import LabelledImages, training_and_test
from attnaudit.training.batches import Batch, Layout
from attnaudit.training.images import ImageTask
from attnaudit.training.text import TextTask

#: Training and test half of a data set.
Halves = tuple[LabelledImages, LabelledImages] | tuple[Corpus, Corpus]


class Feed(typing.Protocol):
    """The data of a task on a device."""

    def training(self, epoch: int, start: int) -> Iterator[Batch]:
        """The batches of an epoch from number `start` on; this rank's share of each."""

    def prepared(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """What the model is called with, and its targets; what is random in it comes from the global generators."""

    def evaluated(self, model: nn.Module) -> dict[str, float]:
        """The model's scores on the test half, by name; it is afterwards in the mode it was in."""

    def watched(self, place: int, count: int) -> dict[str, Tensor]:
        """The first `count` inputs of training batch `place` of the first epoch, and of the test half."""


class Task(typing.Protocol):
    """A recipe that has met its data."""

    #: What a second's work is counted in.
    pace: typing.ClassVar[str]

    @property
    def recipe(self) -> ImageRecipe | TextRecipe:
        """Complete, with what only the data knows, such as the number of classes."""

    @property
    def about(self) -> str:
        """A few words on the data."""

    @property
    def examples(self) -> int:
        """How many there are to learn from."""

    @property
    def fingerprints(self) -> list[str]:
        """Hashes of both halves."""

    @property
    def facts(self) -> dict[str, Any]:
        """What is worth knowing of the data beside the model's scores."""

    def build(self, seed: int) -> nn.Module:
        """The model, untrained."""

    def feed(self, layout: Layout, device: str, workers: int) -> Feed:
        """The data, on a device."""

    def phrase(self, record: Mapping[str, float]) -> str:
        """The scores of an epoch in words."""

    def card(self, facts: Mapping[str, Any]) -> ImageCard | TextCard:
        """What is needed to use the trained model."""


def read_halves(recipe: Recipe, place: Path, limit: int | None = None) -> Halves:
    """The data of a recipe, from a folder or, for text, a file; of each half `limit` images or lines, or all.

    Raises:
        InputError: it is not there, or cannot be learned from.
    """
    if isinstance(recipe, TextRecipe):
        learned, tested = training_and_test_text(place)
        return learned.first(limit), tested.first(limit)
    train, test = (half.evenly_spaced(limit) for half in training_and_test(place))
    if len(set(train.labels.tolist())) < 2:
        raise InputError(f"--limit {limit} takes images of one class only from {train.path}: take more, or all.")
    return train, test


def task_of(recipe: Recipe, data: Halves) -> Task:
    """The task of a recipe and its data.

    Raises:
        UsageError: the recipe is for another kind of data.
    """
    train, test = data
    if isinstance(recipe, TextRecipe) and isinstance(train, Corpus) and isinstance(test, Corpus):
        return TextTask.of(recipe, train, test)
    if isinstance(recipe, ImageRecipe) and isinstance(train, LabelledImages) and isinstance(test, LabelledImages):
        return ImageTask.of(recipe, train, test)
    raise UsageError(f"Recipe {recipe.name} is about {recipe.examples}, but the data is a {type(train).__name__}.")
