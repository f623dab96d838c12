"""The pictures that models are put to the test on, and the same pictures corrupted."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import torch
from jaxtyping import UInt8
from torch import Tensor

from attnaudit.errors import InputError
from attnaudit.robustness.conditions import Condition
from attnaudit.robustness.corruptions import corrupted, ready_made
from attnaudit.robustness.pixels import PixelModel
from attnaudit.sources.labelled import LabelledPictures


@dataclass(frozen=True)
class Examples:
    """Some pictures of a data set, by their places in it.

    Args:
        data: the whole set.
        places: the chosen ones.
        ready: a folder of the same set, corrupted; by default corruptions are made when they are needed.
        cut: whether the pictures of `data` are what models see already, as those of `attnaudit corrupt` are.
        outliers: pictures of no class that the models know.
        classes: how many there are, where `data` is itself a draw, which need not show the last of them.
    """

    data: LabelledPictures
    places: tuple[int, ...]
    ready: Path | None = None
    cut: bool = False
    outliers: LabelledPictures | None = None
    classes: int | None = None

    @staticmethod
    def drawn(
        data: LabelledPictures,
        limit: int | None,
        seed: int,
        *,
        ready: Path | None = None,
        cut: bool = False,
        outliers: LabelledPictures | None = None,
        classes: int | None = None,
    ) -> Examples:
        """`limit` pictures drawn by seed, in the order of the set; all if None. Of the outliers as many."""
        return Examples(
            data,
            _draw(len(data), limit, seed),
            ready,
            cut,
            None if outliers is None else outliers.chosen(_draw(len(outliers), limit, seed)),
            classes,
        )

    @cached_property
    def chosen(self) -> LabelledPictures:
        """The pictures."""
        return self.data.chosen(self.places)

    def clean(self, model: PixelModel) -> Tensor:
        """What the model sees of them."""
        return seen(model, self.chosen, ready=self.cut)

    def corrupted(self, model: PixelModel, clean: Tensor, condition: Condition, seed: int) -> Tensor:
        """What the model sees of them under a corruption."""
        severity = round(condition.strength)
        if self.ready is None:
            return corrupted(clean, condition.name, severity, self.places, seed)
        return seen(model, self.ready_pictures(condition), ready=True)

    def ready_pictures(self, condition: Condition) -> LabelledPictures:
        """The same pictures of a set that was corrupted before.

        Raises:
            InputError: it has other labels than the clean set.
        """
        found = ready_made(Path(self.ready or "."), condition.name, round(condition.strength))
        if not torch.equal(found.labels, self.data.labels):
            raise InputError(
                f"{found.place} has {len(found)} pictures and {self.data.place} {len(self.data)}, or in another order: "
                "give the clean pictures of the same set, such as the clean.parquet that attnaudit corrupt writes."
            )
        return found.chosen(self.places)


def seen(
    model: PixelModel, pictures: LabelledPictures, *, ready: bool = False
) -> UInt8[Tensor, "pictures 3 height width"]:
    """What a model sees of pictures; they are held in memory, a byte per number."""
    return torch.stack(pictures.each(partial(model.seen, ready=ready)))


def _draw(total: int, limit: int | None, seed: int) -> tuple[int, ...]:
    if limit is None or limit >= total:
        return tuple(range(total))
    return tuple(sorted(random.Random(seed).sample(range(total), limit)))


def batches(count: int, size: int) -> Sequence[slice]:
    """Consecutive stretches of at most `size`."""
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]
