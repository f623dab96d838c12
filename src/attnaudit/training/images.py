"""Learning to name images: labelled images, a vision transformer, accuracy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

from torch import Tensor, nn

from attnaudit.errors import UsageError
from attnaudit.records.card import ImageCard, TrainingFacts
from attnaudit.records.recipe import ImageRecipe
from attnaudit.sources.labelled import LabelledImages
from attnaudit.sources.preprocess import IMAGENET_MEAN, IMAGENET_STD
from attnaudit.sources.vision_transformer import build_vision_transformer
from attnaudit.training.augmentation import DeviceAugmentation
from attnaudit.training.batches import Batch, Layout, image_batches
from attnaudit.training.evaluation import evaluate

#: How many times as large a batch is without gradients.
_TESTED = 4


@dataclass(frozen=True)
class ImageTask:
    """A recipe with as many classes as its images have."""

    pace: ClassVar[str] = "images"

    recipe: ImageRecipe
    train: LabelledImages
    test: LabelledImages

    @staticmethod
    def of(recipe: ImageRecipe, train: LabelledImages, test: LabelledImages) -> ImageTask:
        """The number of classes is that of the training half."""
        return ImageTask(recipe.for_classes(train.classes), train, test)

    @property
    def about(self) -> str:
        """How many images of how many classes."""
        return f"{len(self.train):,} and {len(self.test):,} images of {self.train.classes} classes"

    @property
    def examples(self) -> int:
        """Training images."""
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
        return build_vision_transformer(self.recipe.model, seed)

    def feed(self, layout: Layout, device: str, workers: int) -> ImageFeed:
        """Images on a device."""
        return ImageFeed(self, layout, device, workers)

    def phrase(self, record: Mapping[str, float]) -> str:
        """Accuracies."""
        averaged = record.get("average_test_accuracy")
        more = "" if averaged is None else f", averaged weights {averaged:.2%}"
        return f"test accuracy {record['test_accuracy']:.2%}{more}"

    def card(self, facts: Mapping[str, Any]) -> ImageCard:
        """With the names of the classes and ImageNet's statistics, by which all images are normalised."""
        mean, std = (tuple(round(float(n), 3) for n in numbers) for numbers in (IMAGENET_MEAN, IMAGENET_STD))
        return ImageCard(self.recipe.name, self.recipe.model, mean, std, self.train.names, cast(TrainingFacts, facts))  # type: ignore[arg-type]


class ImageFeed:
    """Both halves on a device, and what happens to a batch there."""

    def __init__(self, task: ImageTask, layout: Layout, device: str, workers: int) -> None:
        recipe = task.recipe
        share = layout.ranks.share(recipe.batch)
        if share % 2 and recipe.augmentation.mixes:
            raise UsageError(f"Mixup pairs images, but each process gets {share} of a batch: give an even share.")
        self._pixels = DeviceAugmentation(recipe.augmentation, recipe.model.classes, device)
        self._train = image_batches(task.train, recipe, layout, device, workers)
        tested = replace(layout, examples=len(task.test), batch=_TESTED * recipe.batch)
        self._test = image_batches(task.test, recipe, tested, device, workers)
        self._precision, self._ranks = recipe.precision, layout.ranks

    def training(self, epoch: int, start: int) -> Iterator[Batch]:
        """Images and classes."""
        return self._train.training(epoch, start)

    def prepared(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Augmented images, mixed in pairs, and their classes as probabilities."""
        images, labels = batch
        return self._pixels.mixed(self._pixels.augmented(images), labels)

    def evaluated(self, model: nn.Module) -> dict[str, float]:
        """Loss and accuracy."""
        score = evaluate(model, self._test, self._pixels, self._precision, self._ranks)
        return {"test_loss": score.loss, "test_accuracy": score.accuracy}

    def watched(self, place: int, count: int) -> dict[str, Tensor]:
        """Training images augmented, before mixup, and test images as they are."""
        train, _ = next(iter(self._train.training(0, place)))
        test, _ = next(iter(self._test.in_order()))
        return {"train": self._pixels.augmented(train[:count]), "test": self._pixels.normalised(test[:count])}
