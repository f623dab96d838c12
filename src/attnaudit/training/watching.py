"""The monitor of our own training: which inputs it looks at."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from attnaudit.numerics.randomness import seed_everything
from attnaudit.records.recipe import Recipe
from attnaudit.records.run_folder import RunFolder
from attnaudit.training.batches import Layout
from attnaudit.training.monitor import Monitor
from attnaudit.training.task import Feed

#: The batch of the first epoch that the training curve is measured on: the third, as in the study.
_BATCH = 2


def monitor_of(
    model: nn.Module, recipe: Recipe, folder: RunFolder, feed: Feed, layout: Layout, tell: Callable[[str], None]
) -> Monitor | None:
    """A monitor on a fixed batch of training inputs and one of test inputs; tells where they are fewer than wanted."""
    if recipe.monitored_inputs < 1:
        return None
    own = max(1, recipe.monitored_inputs // layout.ranks.count)
    seed_everything(layout.seed, "monitor", layout.ranks.rank)
    batches = feed.watched(min(_BATCH, layout.steps - 1), own)
    for half, inputs in batches.items():
        if len(inputs) < own:
            have, wanted = (f"{count * layout.ranks.count} {half} {recipe.examples}" for count in (len(inputs), own))
            tell(f"The monitor looks at {have}, not at {wanted}: there are no more in a batch or in all.")
    return Monitor(
        model,
        dict(batches),
        out=folder,
        name=recipe.name,
        scores=recipe.monitor.scores,
        legacy=recipe.monitor.legacy,
        tell=lambda line: None,  # the loop tells it, in its own place
        seed=layout.seed,
        mode={"train": "train" if recipe.monitor.train_mode else "eval"},
    )
