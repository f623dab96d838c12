"""Learning to name pictures: labelled pictures, a vision transformer, accuracy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from torch import Tensor, nn

from attnaudit.errors import UsageError
from attnaudit.sources.architecture import build
from attnaudit.sources.cards import PictureCard
from attnaudit.sources.labelled import LabelledPictures
from attnaudit.sources.preprocess import IMAGENET_MEAN, IMAGENET_STD
from attnaudit.training.augmentation import DeviceAugmentation
from attnaudit.training.batches import Batch, Layout, picture_batches
from attnaudit.training.evaluation import evaluate
from attnaudit.training.recipe import PictureRecipe

#: How many times as large a batch is without gradients.
_TESTED = 4


@dataclass(frozen=True)
class PictureTask:
    """A recipe with as many classes as its pictures have."""

    pace: ClassVar[str] = "images"

    recipe: PictureRecipe
    train: LabelledPictures
    test: LabelledPictures

    @staticmethod
    def of(recipe: PictureRecipe, train: LabelledPictures, test: LabelledPictures) -> PictureTask:
        """The number of classes is that of the training half."""
        return PictureTask(recipe.for_classes(train.classes), train, test)

    @property
    def about(self) -> str:
        """How many pictures of how many classes."""
        return f"{len(self.train):,} and {len(self.test):,} pictures of {self.train.classes} classes"

    @property
    def examples(self) -> int:
        """Training pictures."""
        return len(self.train)

    @property
    def fingerprints(self) -> list[str]:
        """Hashes of both halves."""
        return [self.train.fingerprint, self.test.fingerprint]

    @property
    def facts(self) -> dict[str, Any]:
        """Nothing beside the scores."""
        return {}

    def build(self, seed: int) -> nn.Module:
        """A vision transformer."""
        return build(self.recipe.model, seed)

    def feed(self, layout: Layout, device: str, workers: int) -> PictureFeed:
        """Pictures on a device."""
        return PictureFeed(self, layout, device, workers)

    def phrase(self, record: Mapping[str, float]) -> str:
        """Accuracies."""
        averaged = record.get("average_test_accuracy")
        more = "" if averaged is None else f", averaged weights {averaged:.2%}"
        return f"test accuracy {record['test_accuracy']:.2%}{more}"

    def card(self, facts: Mapping[str, Any]) -> PictureCard:
        """With the names of the classes and ImageNet's statistics, by which all pictures are normalised."""
        mean, std = (tuple(round(float(n), 3) for n in numbers) for numbers in (IMAGENET_MEAN, IMAGENET_STD))
        return PictureCard(self.recipe.name, self.recipe.model, mean, std, self.train.names, facts)  # type: ignore[arg-type]


class PictureFeed:
    """Both halves on a device, and what happens to a batch there."""

    def __init__(self, task: PictureTask, layout: Layout, device: str, workers: int) -> None:
        recipe = task.recipe
        share = layout.ranks.share(recipe.batch)
        if share % 2 and (recipe.augmentation.mixup or recipe.augmentation.cutmix):
            raise UsageError(f"Mixup pairs pictures, but each process gets {share} of a batch: give an even share.")
        self._pixels = DeviceAugmentation(recipe.augmentation, recipe.model.classes, device)
        self._train = picture_batches(task.train, recipe, layout, device, workers)
        tested = replace(layout, examples=len(task.test), batch=_TESTED * recipe.batch)
        self._test = picture_batches(task.test, recipe, tested, device, workers)
        self._precision, self._ranks = recipe.precision, layout.ranks

    def training(self, epoch: int, start: int) -> Iterator[Batch]:
        """Pictures and classes."""
        return self._train.training(epoch, start)

    def prepared(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Augmented pictures, mixed in pairs, and their classes as probabilities."""
        images, labels = batch
        return self._pixels.mixed(self._pixels.augmented(images), labels)

    def evaluated(self, model: nn.Module) -> dict[str, float]:
        """Loss and accuracy."""
        score = evaluate(model, self._test, self._pixels, self._precision, self._ranks)
        return {"test_loss": score.loss, "test_accuracy": score.accuracy}

    def watched(self, place: int, count: int) -> dict[str, Tensor]:
        """Training pictures augmented, before mixup, and test pictures as they are."""
        train, _ = next(iter(self._train.training(0, place)))
        test, _ = next(iter(self._test.in_order()))
        return {"train": self._pixels.augmented(train[:count]), "test": self._pixels.normalised(test[:count])}
