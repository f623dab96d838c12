"""The monitor of our own training: which pictures it looks at."""

from __future__ import annotations

from itertools import islice

from torch import Tensor, nn

from attnaudit.evidence.folder import RunFolder
from attnaudit.training.augmentation import DeviceAugmentation
from attnaudit.training.batches import Batches, Layout
from attnaudit.training.monitor import Monitor
from attnaudit.training.randomness import seed_everything
from attnaudit.training.recipe import Recipe

#: The batch of the first epoch that the training curve is measured on: the third, as in the study.
_BATCH = 2


def monitor_of(
    model: nn.Module,
    recipe: Recipe,
    folder: RunFolder,
    halves: tuple[Batches, Batches],
    pixels: DeviceAugmentation,
    layout: Layout,
) -> Monitor | None:
    """A monitor on a fixed batch of training pictures (augmented, before mixup) and one of test pictures."""
    wishes = recipe.monitor
    if wishes.images < 1:
        return None
    own = max(1, wishes.images // layout.ranks.count)
    place = min(_BATCH, layout.steps - 1)
    seed_everything(layout.seed, "monitor", layout.ranks.rank)
    train = pixels.augmented(next(iter(halves[0].training(0, place)))[0][:own])
    test = pixels.normalised(_first(halves[1], own))
    return Monitor(
        model,
        {"train": train, "test": test},
        out=folder,
        name=recipe.name,
        scores=wishes.scores,
        legacy=wishes.legacy,
        tell=lambda line: None,  # the loop tells it, in its own place
        seed=layout.seed,
        mode={"train": "train" if wishes.train_mode else "eval"},
    )


def _first(batches: Batches, count: int) -> Tensor:
    (images, _), *_ = islice(batches.in_order(), 1)
    return images[:count]
