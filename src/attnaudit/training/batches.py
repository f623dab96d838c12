"""Batches of examples: from memory where they are small, images also decoded in worker processes.

The order of an epoch, and what happens to an example in it, follow from seed, epoch and example alone. So training can
go on in the middle of an epoch, with any number of workers, as if it had never stopped.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from attnaudit.errors import AttnAuditError, UsageError, first_line
from attnaudit.extras import optional
from attnaudit.numerics.randomness import preserved_random_state, seed_everything, torch_generator
from attnaudit.records.recipe import ImageRecipe
from attnaudit.sources.labelled import LabelledImages
from attnaudit.sources.preprocess import centre_crop
from attnaudit.training.processes import Ranks

#: Examples and what is to be said of them: images as bytes and their classes, words and the words that follow.
Batch = tuple[Tensor, Tensor]


class Batches(typing.Protocol):
    """Examples of one half of the data, batch by batch."""

    def training(self, epoch: int, start: int) -> Iterator[Batch]:
        """The batches of an epoch from number `start` on; this rank's share of each."""

    def in_order(self) -> Iterator[Batch]:
        """All examples once, in order, unchanged; this rank's share."""


@dataclass(frozen=True)
class Layout:
    """How examples are cut into batches; a last batch that is not full is left out of training."""

    examples: int
    batch: int
    seed: int
    ranks: Ranks
    what: str = "images"

    @property
    def steps(self) -> int:
        """Batches in an epoch."""
        if self.examples < self.batch:
            raise UsageError(f"{self.examples} {self.what} do not fill a batch of {self.batch}: give --set batch=…")
        return self.examples // self.batch

    def order(self, epoch: int, start: int = 0) -> Int64[Tensor, "steps share"]:
        """Which examples this rank takes in each step."""
        drawn = torch.randperm(self.examples, generator=torch_generator(self.seed, "order", epoch))
        share, first = self.ranks.share(self.batch), self.ranks.rank * (self.batch // self.ranks.count)
        return drawn[: self.steps * self.batch].view(self.steps, self.batch)[start:, first : first + share]

    def in_order(self) -> list[Tensor]:
        """This rank's examples of an evaluation, in batches."""
        own = torch.arange(self.ranks.rank, self.examples, self.ranks.count)
        return list(torch.split(own, self.batch))


class ResidentBatches:
    """All examples on the device: CIFAR-10 as bytes takes 150 MB."""

    def __init__(self, examples: Tensor, targets: Tensor, layout: Layout, device: str) -> None:
        self._examples, self._targets = examples.to(device), targets.to(device)
        self._layout = layout

    def training(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch."""
        for chosen in self._layout.order(epoch, start).to(self._examples.device):
            yield self._examples[chosen], self._targets[chosen]

    def in_order(self) -> Iterator[Batch]:
        """All examples once."""
        for chosen in self._layout.in_order():
            yield self._examples[chosen], self._targets[chosen]


class LoadedBatches:
    """Images decoded and augmented by timm's transform in worker processes, then moved to the device."""

    def __init__(self, images: LabelledImages, recipe: ImageRecipe, layout: Layout, device: str, workers: int) -> None:
        self._images, self._layout, self._device, self._workers = images, layout, device, workers
        size, wishes = recipe.model.image_size, recipe.augmentation
        self._plain = partial(centre_crop, size=size)
        try:
            self._augmenting = optional("timm.data", "timm", "Training").create_transform(
                size,
                is_training=True,
                use_prefetcher=True,
                color_jitter=wishes.colour_jitter,
                auto_augment=wishes.auto_augment,
                interpolation="bicubic",
            )
        except (AssertionError, LookupError, ValueError) as error:
            raise UsageError(
                f"augmentation: timm cannot make a transform of auto_augment {wishes.auto_augment!r} and colour_jitter "
                f"{wishes.colour_jitter:g} ({first_line(error)}): give e.g. rand-m9-mstd0.5-inc1 and 0.3."
            ) from error

    def training(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch."""
        steps = list(self._layout.order(epoch, start))
        return self._loaded(_Transformed(self._images, self._augmenting, (self._layout.seed, epoch)), steps)

    def in_order(self) -> Iterator[Batch]:
        """All images once."""
        return self._loaded(_Transformed(self._images, self._plain, (0, 0)), self._layout.in_order())

    def _loaded(self, data: _Transformed, steps: list[Tensor]) -> Iterator[Batch]:
        loader = DataLoader(
            data,
            batch_sampler=[chosen.tolist() for chosen in steps],
            num_workers=self._workers,
            pin_memory=self._device != "cpu",
            generator=torch.Generator(),
        )
        try:
            for pixels, labels in loader:
                yield pixels.to(self._device, non_blocking=True), labels.to(self._device, non_blocking=True)
        except AttnAuditError as error:
            # A worker's error arrives with its traceback for words; the sentence stands behind the last name.
            raise type(error)(str(error).rstrip().rpartition(f"{type(error).__name__}: ")[2]) from error


class _Transformed(Dataset[tuple[Tensor, int]]):
    """Images through a transform whose random choices follow from seed, epoch and image."""

    def __init__(self, images: LabelledImages, transform: Callable[..., typing.Any], place: tuple[int, int]) -> None:
        self._images, self._transform, self._place = images, transform, place

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        with preserved_random_state():
            seed_everything(*self._place, index)
            pixels = np.asarray(self._transform(self._images.image(index)))
        return torch.from_numpy(pixels), int(self._images.labels[index])


def image_batches(images: LabelledImages, recipe: ImageRecipe, layout: Layout, device: str, workers: int) -> Batches:
    """In memory unless the recipe wants timm's transforms."""
    if recipe.augmentation.kind == "timm":
        return LoadedBatches(images, recipe, layout, device, workers)
    return ResidentBatches(images.pixels(recipe.model.image_size), images.labels, layout, device)
