"""Segmentation: pictures with masks, augmented together, a vision transformer with a decoder, mIoU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import log

import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor, nn
from torch.nn import functional

from attnaudit.capture.capture import evaluating
from attnaudit.numerics.precision import autocast
from attnaudit.records.recipe import MaskAugmentationSettings, SegmentationRecipe
from attnaudit.sources.preprocess import IMAGENET_MEAN, IMAGENET_STD
from attnaudit.sources.segmented import UNLABELLED, SegmentedImages
from attnaudit.statistics.segmentation import (
    ClassCounts,
    confusion_matrices,
    mean_accuracy,
    mean_iou,
    pixel_accuracy,
)
from attnaudit.training.accuracy import TEST_BATCH_FACTOR
from attnaudit.training.batching import IGNORED, Batch, InMemoryBatches, Layout
from attnaudit.training.image_task import VisionTask

#: Of red, green and blue.
_GREY_WEIGHTS = (0.299, 0.587, 0.114)


@dataclass(frozen=True)
class SegmentationTask(VisionTask[SegmentationRecipe, SegmentedImages]):
    """A recipe and its pictures."""

    @property
    def data_summary(self) -> str:
        """The numbers of pictures and classes."""
        return (
            f"{len(self.train):,} training and {len(self.test):,} test pictures, masks of {self.train.classes} classes"
        )

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


class SegmentationFeed:
    """Both halves on a device, and their augmentation."""

    def __init__(self, task: SegmentationTask, layout: Layout, device: str) -> None:
        recipe = task.recipe
        self._augmentation = MaskAugmentation(recipe.augmentation, device)
        test_layout = replace(layout, examples=len(task.test), batch=TEST_BATCH_FACTOR * recipe.batch)
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


class MaskAugmentation:
    """Random scale, place and mirroring for a picture and its mask alike, and random colours for the picture.

    Random choices come from the global generators, so seed them first.
    """

    def __init__(self, settings: MaskAugmentationSettings, device: str) -> None:
        self._settings = settings
        statistics = (torch.from_numpy(numbers) for numbers in (IMAGENET_MEAN, IMAGENET_STD))
        self._mean, self._std = (numbers.view(1, 3, 1, 1).to(device) for numbers in statistics)
        # Made once: moving numbers to the device would make every step wait for the one before it.
        self._grey_weights = torch.tensor(_GREY_WEIGHTS, device=device).view(1, 3, 1, 1)

    def normalise(self, pixels: UInt8[Tensor, "b 3 h w"]) -> Float[Tensor, "b 3 h w"]:
        """Bytes to floats, with ImageNet's mean at 0 and its deviation at 1."""
        return (pixels.float() / 255 - self._mean) / self._std

    def __call__(
        self, pixels: UInt8[Tensor, "b 3 h w"], masks: UInt8[Tensor, "b h w"]
    ) -> tuple[Float[Tensor, "b 3 h w"], UInt8[Tensor, "b h w"]]:
        """Normalised pictures, and their masks; both are looked up at the same places."""
        grid = self._places(pixels)
        images = functional.grid_sample(pixels.float(), grid, mode="bilinear", align_corners=False)
        # 0 is what lies outside: numbers are moved so that it means a pixel without a class.
        moved = (masks.float() - UNLABELLED)[:, None]
        classes = functional.grid_sample(moved, grid, mode="nearest", align_corners=False)[:, 0] + UNLABELLED
        return self.normalise(self._coloured(images)), classes.round().to(torch.uint8)

    def _places(self, pixels: Tensor) -> Tensor:
        """Where each pixel of the result is looked up, in units of half a picture: a part of it, or it and more."""
        own, count, device = self._settings, len(pixels), pixels.device
        low, high = log(own.smallest), log(own.largest)
        shown = (-low - (high - low) * torch.rand(count, device=device)).exp()
        room = (1 - shown).abs()  # how far the middle may move, so that the smaller of the two stays inside the larger
        right, down = (room * (2 * torch.rand(count, device=device) - 1) for _ in range(2))
        sign = 1 - 2 * torch.randint(2, (count,), device=device) * own.flip
        none = torch.zeros_like(shown)
        lookup = torch.stack([torch.stack([sign * shown, none, right], 1), torch.stack([none, shown, down], 1)], 1)
        return functional.affine_grid(lookup, list(pixels.shape), align_corners=False)

    def _coloured(self, images: Float[Tensor, "b 3 h w"]) -> UInt8[Tensor, "b 3 h w"]:
        """Brightness, contrast and saturation: towards, or away from, black, uniform and grey."""
        for poorer in (torch.zeros_like, self._uniform, self._grey):
            less = poorer(images)
            factor = 1 + self._settings.colour * (2 * torch.rand(len(images), 1, 1, 1, device=images.device) - 1)
            images = (less + factor * (images - less)).clamp(0, 255)
        return images.round().to(torch.uint8)

    def _grey(self, images: Tensor) -> Tensor:
        return (images * self._grey_weights).sum(dim=1, keepdim=True).expand_as(images)

    def _uniform(self, images: Tensor) -> Tensor:
        return self._grey(images).mean(dim=(1, 2, 3), keepdim=True).expand_as(images)


def targets_of(masks: UInt8[Tensor, "b h w"]) -> Int64[Tensor, "pixels"]:
    """The classes of all pixels, a row for every prediction; those without a class are left out by the loss."""
    classes = masks.flatten().long()
    return classes.masked_fill(classes == UNLABELLED, IGNORED)
