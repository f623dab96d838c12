"""Segmentation: pictures with masks, a vision transformer with a decoder, mIoU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from attnaudit.capture.capture import evaluating
from attnaudit.numerics.precision import autocast
from attnaudit.records.card import ImageCard, TrainingFacts
from attnaudit.records.recipe import SegmentationRecipe
from attnaudit.sources.preprocess import IMAGENET_MEAN, IMAGENET_STD
from attnaudit.sources.segmented import SegmentedImages
from attnaudit.sources.vision_transformer import build_vision_transformer
from attnaudit.statistics.segmentation import (
    ClassCounts,
    confusion_matrices,
    mean_accuracy,
    mean_iou,
    pixel_accuracy,
)
from attnaudit.training.batching import Batch, InMemoryBatches, Layout
from attnaudit.training.mask_augmentation import MaskAugmentation, targets_of

#: How much larger batches are without gradients.
_TEST_BATCH_FACTOR = 4


@dataclass(frozen=True)
class SegmentationTask:
    """A recipe and its pictures."""

    recipe: SegmentationRecipe
    train: SegmentedImages
    test: SegmentedImages

    @property
    def data_summary(self) -> str:
        """The numbers of pictures and classes."""
        return (
            f"{len(self.train):,} training and {len(self.test):,} test pictures, masks of {self.train.classes} classes"
        )

    @property
    def examples(self) -> int:
        """The number of training pictures."""
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
        """An untrained network."""
        return build_vision_transformer(self.recipe.model, seed)

    def feed(self, layout: Layout, device: str, workers: int) -> SegmentationFeed:
        """Pictures on a device."""
        return SegmentationFeed(self, layout, device)

    def describe(self, record: Mapping[str, float]) -> str:
        """The three numbers, mIoU also of averaged weights."""
        averaged = record.get("average_test_mean_iou")
        more = "" if averaged is None else f", averaged weights {averaged:.2%}"
        return (
            f"mIoU {record['test_mean_iou']:.2%}, mean accuracy {record['test_mean_accuracy']:.2%}, pixel accuracy "
            f"{record['test_pixel_accuracy']:.2%}{more}"
        )

    def card(self, facts: Mapping[str, Any]) -> ImageCard:
        """With ImageNet's statistics, which normalise all pictures."""
        mean, std = (tuple(round(float(n), 3) for n in numbers) for numbers in (IMAGENET_MEAN, IMAGENET_STD))
        return ImageCard(self.recipe.name, self.recipe.model, mean, std, self.train.names, cast(TrainingFacts, facts))  # type: ignore[arg-type]


class SegmentationFeed:
    """Both halves on a device, and their augmentation."""

    def __init__(self, task: SegmentationTask, layout: Layout, device: str) -> None:
        recipe = task.recipe
        self._augmentation = MaskAugmentation(recipe.augmentation, device)
        test_layout = replace(layout, examples=len(task.test), batch=_TEST_BATCH_FACTOR * recipe.batch)
        shape = recipe.model.image_shape
        self._train, self._test = (
            InMemoryBatches(half.pixels(*shape), half.mask_pixels(*shape), own, device)
            for half, own in ((task.train, layout), (task.test, test_layout))
        )
        self._precision, self._ranks, self._classes = recipe.precision, layout.ranks, recipe.model.classes

    def training(self, epoch: int, start: int) -> Iterator[Batch]:
        """Pictures and masks."""
        return self._train.training(epoch, start)

    def prepare(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Augmented pictures, and the class of every pixel."""
        images, masks = self._augmentation(*batch)
        return images, targets_of(masks)

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """The mean loss of a pixel, mIoU, mean accuracy and pixel accuracy over all pictures of all ranks."""
        confusion = torch.zeros(1, self._classes, self._classes, dtype=torch.int64)
        loss = torch.zeros((), dtype=torch.float64)
        with evaluating(model):
            for pixels, masks in self._test.in_order():
                with autocast(pixels.device, self._precision):
                    scores = model(self._augmentation.normalise(pixels)).float()
                own = functional.cross_entropy(scores.flatten(0, -2), targets_of(masks), reduction="sum")
                found = confusion_matrices(scores.argmax(dim=-1), masks, self._classes)
                loss = loss.to(pixels.device) + own.double()
                confusion = confusion.to(pixels.device) + found.sum(dim=0)
        confusion, loss = self._ranks.total(confusion), self._ranks.total(loss)
        counts = ClassCounts.of(confusion)
        return {
            "test_loss": float(loss) / max(int(confusion.sum()), 1),
            "test_mean_iou": float(mean_iou(counts)[0]),
            "test_mean_accuracy": float(mean_accuracy(counts)[0]),
            "test_pixel_accuracy": float(pixel_accuracy(counts)[0]),
        }

    def monitor_inputs(self, batch: int, count: int) -> dict[str, Tensor]:
        """Training pictures augmented, and test pictures as they are."""
        train, masks = next(iter(self._train.training(0, batch)))
        test, _ = next(iter(self._test.in_order()))
        images, _ = self._augmentation(train[:count], masks[:count])
        return {"train": images, "test": self._augmentation.normalise(test[:count])}
