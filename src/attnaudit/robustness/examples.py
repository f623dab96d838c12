"""The images that models are put to the test on, and the same images corrupted."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import torch
from jaxtyping import UInt8
from torch import Tensor

from attnaudit.errors import InputError, UsageError
from attnaudit.records.evaluation import Condition, ConditionKind
from attnaudit.robustness.conditions import OUTLIERS
from attnaudit.robustness.corruptions import corrupted, ready_made
from attnaudit.robustness.pixels import PixelModel
from attnaudit.sources.labelled import LabelledImages


@dataclass(frozen=True)
class Examples:
    """Some images of a data set, by their places in it.

    Args:
        data: the whole set.
        places: the chosen ones.
        ready: a folder of the same set, corrupted; by default corruptions are made when they are needed.
        cut: whether the images of `data` are what models see already, as those of `attnaudit corrupt` are.
        outliers: images of no class that the models know.
        classes: how many there are, where `data` is itself a draw, which need not show the last of them.
    """

    data: LabelledImages
    places: tuple[int, ...]
    ready: Path | None = None
    cut: bool = False
    outliers: LabelledImages | None = None
    classes: int | None = None

    @staticmethod
    def drawn(
        data: LabelledImages,
        limit: int | None,
        seed: int,
        *,
        ready: Path | None = None,
        cut: bool = False,
        outliers: LabelledImages | None = None,
        classes: int | None = None,
    ) -> Examples:
        """`limit` images drawn by seed, in the order of the set; all if None. Of the outliers as many."""
        return Examples(
            data,
            _draw(len(data), limit, seed),
            ready,
            cut,
            None if outliers is None else outliers.select(_draw(len(outliers), limit, seed)),
            classes,
        )

    @cached_property
    def chosen(self) -> LabelledImages:
        """The images."""
        return self.data.select(self.places)

    def images(self, condition: Condition) -> LabelledImages:
        """The images as they are on disk before the condition is made."""
        if condition == OUTLIERS:
            if self.outliers is None:
                raise UsageError("The condition 'outliers' needs images of unknown classes: give --outliers.")
            return self.outliers
        if condition.kind is ConditionKind.CORRUPTION and self.ready is not None:
            return self.ready_images(condition)
        return self.chosen

    def clean(self, model: PixelModel) -> Tensor:
        """What the model sees of them."""
        return seen(model, self.chosen, ready=self.cut)

    def corrupted(self, model: PixelModel, clean: Tensor, condition: Condition, seed: int) -> Tensor:
        """What the model sees of them under a corruption."""
        severity = round(condition.strength)
        if self.ready is None:
            return corrupted(clean, condition.name, severity, self.places, seed)
        return seen(model, self.ready_images(condition), ready=True)

    def ready_images(self, condition: Condition) -> LabelledImages:
        """The same images of a set that was corrupted before.

        Raises:
            InputError: it has other labels than the clean set.
        """
        found = ready_made(Path(self.ready or "."), condition.name, round(condition.strength))
        if not torch.equal(found.labels, self.data.labels):
            raise InputError(
                f"{found.path} has {len(found)} images and {self.data.path} {len(self.data)}, or in another order: "
                "give the clean images of the same set, such as the clean.parquet that attnaudit corrupt writes."
            )
        return found.select(self.places)


def seen(model: PixelModel, images: LabelledImages, *, ready: bool = False) -> UInt8[Tensor, "images 3 height width"]:
    """What a model sees of images; they are held in memory, a byte per number."""
    return torch.stack(images.map(partial(model.seen, ready=ready)))


def _draw(total: int, limit: int | None, seed: int) -> tuple[int, ...]:
    if limit is None or limit >= total:
        return tuple(range(total))
    return tuple(sorted(random.Random(seed).sample(range(total), limit)))


def batches(count: int, size: int) -> Sequence[slice]:
    """Consecutive stretches of at most `size`."""
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]
