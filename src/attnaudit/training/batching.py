"""Batches of examples: kept in memory, or images decoded and augmented in worker processes.

The order of an epoch, and the augmentation of an example in it, follow from seed, epoch and example alone. So a
training can be resumed in the middle of an epoch, with any number of workers.
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

from attnaudit.errors import AttnAuditError, UsageError
from attnaudit.numerics.randomness import preserved_random_state, seed_everything, torch_generator
from attnaudit.records.recipe import ImageRecipe
from attnaudit.sources.labelled import LabelledImages
from attnaudit.sources.preprocess import centre_crop
from attnaudit.training.augmentation import timm_transform
from attnaudit.training.distributed import Ranks

#: Examples and their targets: images as bytes and their classes, or words and the words that follow them.
Batch = tuple[Tensor, Tensor]
#: The target of what has no class, which torch's cross-entropy leaves out.
IGNORED = -100


class Batches(typing.Protocol):
    """The examples of one half of the data, batch by batch."""

    def training(self, epoch: int, start: int) -> Iterator[Batch]:
        """This rank's share of the batches of an epoch, from number `start` on."""

    def in_order(self) -> Iterator[Batch]:
        """This rank's share of all examples, in order and unchanged."""


@dataclass(frozen=True)
class Layout:
    """How examples are divided into batches; training leaves out a last batch that is not full.

    `name` is what the examples are called in messages.
    """

    examples: int
    batch: int
    seed: int
    ranks: Ranks
    name: str = "images"

    @property
    def steps(self) -> int:
        """The number of batches in an epoch."""
        if self.examples < self.batch:
            raise UsageError(f"batch must be ≤ the {self.examples} {self.name} of the data, got {self.batch}.")
        return self.examples // self.batch

    def order(self, epoch: int, start: int = 0) -> Int64[Tensor, "steps share"]:
        """The examples that this rank takes in each step."""
        drawn = torch.randperm(self.examples, generator=torch_generator(self.seed, "order", epoch))
        share, first = self.ranks.share(self.batch), self.ranks.rank * (self.batch // self.ranks.count)
        return drawn[: self.steps * self.batch].view(self.steps, self.batch)[start:, first : first + share]

    def in_order(self) -> list[Tensor]:
        """This rank's examples of an evaluation, in batches."""
        own = torch.arange(self.ranks.rank, self.examples, self.ranks.count)
        return list(torch.split(own, self.batch))


class InMemoryBatches:
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


class DecodedBatches:
    """Images decoded, and augmented by timm's transform, in worker processes."""

    def __init__(self, images: LabelledImages, recipe: ImageRecipe, layout: Layout, device: str, workers: int) -> None:
        self._images, self._layout, self._device, self._workers = images, layout, device, workers
        self._plain = partial(centre_crop, height=recipe.model.image_size)
        self._augment = timm_transform(recipe.augmentation, recipe.model.image_size)

    def training(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch."""
        steps = list(self._layout.order(epoch, start))
        return self._load(_TransformedImages(self._images, self._augment, (self._layout.seed, epoch)), steps)

    def in_order(self) -> Iterator[Batch]:
        """All images once."""
        return self._load(_TransformedImages(self._images, self._plain, (0, 0)), self._layout.in_order())

    def _load(self, data: _TransformedImages, steps: list[Tensor]) -> Iterator[Batch]:
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
            # The text of a worker's error is its traceback, which ends with the class name and the sentence.
            raise type(error)(str(error).rstrip().rpartition(f"{type(error).__name__}: ")[2]) from error


class _TransformedImages(Dataset[tuple[Tensor, int]]):
    """Images through a transform whose random choices follow from `seed_parts` (seed and epoch) and the image."""

    def __init__(
        self, images: LabelledImages, transform: Callable[..., typing.Any], seed_parts: tuple[int, int]
    ) -> None:
        self._images, self._transform, self._seed_parts = images, transform, seed_parts

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        with preserved_random_state():
            seed_everything(*self._seed_parts, index)
            pixels = np.asarray(self._transform(self._images.image(index)))
        return torch.from_numpy(pixels), int(self._images.labels[index])


def image_batches(images: LabelledImages, recipe: ImageRecipe, layout: Layout, device: str, workers: int) -> Batches:
    """Images in memory, unless the recipe asks for timm's transforms."""
    if recipe.augmentation.kind == "timm":
        return DecodedBatches(images, recipe, layout, device, workers)
    return InMemoryBatches(images.pixels(recipe.model.image_size), images.labels, layout, device)
