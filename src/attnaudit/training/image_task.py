"""Classification of images: labelled images, a vision transformer, accuracy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast

from torch import Tensor, nn

from attnaudit.errors import UsageError
from attnaudit.records.card import ImageCard, TrainingFacts
from attnaudit.records.recipe import ImageRecipe, SegmentationRecipe
from attnaudit.sources.labelled import LabelledImages
from attnaudit.sources.preprocess import IMAGENET_MEAN, IMAGENET_STD
from attnaudit.sources.segmented import SegmentedImages
from attnaudit.sources.vision_transformer import build_vision_transformer
from attnaudit.training.accuracy import TEST_BATCH_FACTOR, classes_in_words, evaluate_classifier
from attnaudit.training.augmentation import DeviceAugmentation
from attnaudit.training.batching import Batch, Layout, image_batches

VisionRecipe = TypeVar("VisionRecipe", ImageRecipe, SegmentationRecipe)
DataSet = TypeVar("DataSet", LabelledImages, SegmentedImages)


@dataclass(frozen=True)
class VisionTask(Generic[VisionRecipe, DataSet]):
    """A recipe of a vision transformer with its images: what classification and segmentation have in common."""

    recipe: VisionRecipe
    train: DataSet
    test: DataSet

    @property
    def examples(self) -> int:
        """The number of training images."""
        return len(self.train)

    @property
    def fingerprints(self) -> list[str]:
        """Hashes of both halves."""
        return [self.train.fingerprint, self.test.fingerprint]

    @property
    def facts(self) -> dict[str, Any]:
        """None."""
        return {}

    def build(self, seed: int) -> nn.Module:
        """An untrained vision transformer."""
        return build_vision_transformer(self.recipe.model, seed)

    def card(self, facts: Mapping[str, Any]) -> ImageCard:
        """With the names of the classes, and ImageNet's statistics, which normalise all images."""
        mean, std = (tuple(round(float(n), 3) for n in numbers) for numbers in (IMAGENET_MEAN, IMAGENET_STD))
        return ImageCard(self.recipe.name, self.recipe.model, mean, std, self.train.names, cast(TrainingFacts, facts))  # type: ignore[arg-type]


@dataclass(frozen=True)
class ImageTask(VisionTask[ImageRecipe, LabelledImages]):
    """A recipe with the number of classes of its images."""

    @staticmethod
    def from_data(recipe: ImageRecipe, train: LabelledImages, test: LabelledImages) -> ImageTask:
        """The classes are those of the training half."""
        return ImageTask(recipe.for_classes(train.classes), train, test)

    @property
    def data_summary(self) -> str:
        """The numbers of images and classes."""
        classes = classes_in_words(self.train.classes, self.train.labels, "training image")
        return f"{len(self.train):,} training and {len(self.test):,} test images of {classes}"

    def feed(self, layout: Layout, device: str, workers: int) -> ImageFeed:
        """Images on a device."""
        return ImageFeed(self, layout, device, workers)

    def describe(self, record: Mapping[str, float]) -> str:
        """Accuracies."""
        averaged = record.get("average_test_accuracy")
        more = "" if averaged is None else f", averaged weights {averaged:.2%}"
        return f"test accuracy {record['test_accuracy']:.2%}{more}"


class ImageFeed:
    """Both halves on a device, and their augmentation."""

    def __init__(self, task: ImageTask, layout: Layout, device: str, workers: int) -> None:
        recipe = task.recipe
        share = layout.ranks.share(recipe.batch)
        if share % 2 and recipe.augmentation.mixes:
            raise UsageError(f"Each process needs an even share of a batch, because mixup pairs images, got {share}.")
        self._augmentation = DeviceAugmentation(recipe.augmentation, recipe.model.classes, device)
        self._train = image_batches(task.train, recipe, layout, device, workers)
        test_layout = replace(layout, examples=len(task.test), batch=TEST_BATCH_FACTOR * recipe.batch)
        self._test = image_batches(task.test, recipe, test_layout, device, workers)
        self._precision, self._ranks = recipe.precision, layout.ranks

    def training(self, epoch: int, start: int) -> Iterator[Batch]:
        """Images and classes."""
        return self._train.training(epoch, start)

    def prepare(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Augmented images, mixed in pairs, and their classes as probabilities."""
        images, labels = batch
        return self._augmentation.mix(self._augmentation.augment(images), labels)

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Loss and accuracy."""
        batches = ((self._augmentation.normalise(images), labels) for images, labels in self._test.in_order())
        score = evaluate_classifier(model, batches, self._precision, self._ranks)
        return {"test_loss": score.loss, "test_accuracy": score.accuracy}

    def monitor_inputs(self, batch: int, count: int) -> dict[str, Tensor]:
        """Training images augmented, but not mixed, and test images as they are."""
        train, _ = next(iter(self._train.training(0, batch)))
        test, _ = next(iter(self._test.in_order()))
        return {
            "train": self._augmentation.augment(train[:count]),
            "test": self._augmentation.normalise(test[:count]),
        }
