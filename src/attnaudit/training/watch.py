"""What a recipe says of the monitor."""

from __future__ import annotations

from dataclasses import dataclass

from attnaudit.records.typed_settings import check_range


@dataclass(frozen=True)
class Watch:
    """What the monitor does: it measures every `every` epochs, on fixed batches of training and of test inputs.

    `scores` inputs of each are also held against their references. `train_mode` measures the training batch with drop
    path active, as the study does; `legacy` adds Teo & Nguyen's logged quantity.
    """

    every: int = 1
    scores: int = 2
    train_mode: bool = False
    legacy: bool = False

    def __post_init__(self) -> None:
        check_range("monitor", 1, every=self.every)
        check_range("monitor", 0, scores=self.scores)


@dataclass(frozen=True)
class ImageWatch(Watch):
    """On so many images, as far as a batch has them; none for no monitor."""

    images: int = 128

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("monitor", 0, images=self.images)


@dataclass(frozen=True)
class TextWatch(Watch):
    """On so many contexts, as far as a batch has them; none for no monitor."""

    contexts: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("monitor", 0, contexts=self.contexts)
