"""The images on which models are evaluated, clean and corrupted."""

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
from attnaudit.numerics.digest import digest
from attnaudit.records.evaluation import Condition, ConditionKind
from attnaudit.robustness.conditions import OUTLIERS
from attnaudit.robustness.corrupted_folder import made_from
from attnaudit.robustness.corruptions import corrupted, corrupted_place, version
from attnaudit.robustness.pixels import PixelModel
from attnaudit.sources.encoded_images import EncodedImages
from attnaudit.sources.labelled import LabelledImages
from attnaudit.sources.segmented import SegmentedImages

#: Images with a class each, or with masks.
DataSet = LabelledImages | SegmentedImages


@dataclass(frozen=True)
class Examples:
    """Some images of a data set, by index.

    Args:
        data: the whole data set.
        indices: the selected images.
        corrupted_folder: a folder of the same data set, corrupted; by default corruptions are computed when needed.
        preprocessed: whether the images of `data` are already preprocessed, as those of `attnaudit corrupt` are.
        outliers: images of classes unknown to the models.
        classes: the number of classes, if `data` is itself a sample that may lack some.
        crop_size: height and width of the crops that `attnaudit corrupt` made, if one of the two folders is its own.
    """

    data: DataSet
    indices: tuple[int, ...]
    corrupted_folder: Path | None = None
    preprocessed: bool = False
    outliers: LabelledImages | None = None
    classes: int | None = None
    crop_size: tuple[int, int] | None = None

    @staticmethod
    def drawn(
        data: DataSet,
        limit: int | None,
        seed: int,
        *,
        corrupted_folder: Path | None = None,
        preprocessed: bool = False,
        outliers: LabelledImages | None = None,
        classes: int | None = None,
        crop_size: tuple[int, int] | None = None,
    ) -> Examples:
        """`limit` random images, in the order of the data set, and as many outliers; all if None."""
        return Examples(
            data,
            drawn_indices(len(data), limit, seed),
            corrupted_folder,
            preprocessed,
            None if outliers is None else outliers.select(drawn_indices(len(outliers), limit, seed)),
            classes,
            crop_size,
        )

    @cached_property
    def selected(self) -> DataSet:
        """The selected images."""
        return self.data.select(self.indices)

    def images(self, condition: Condition) -> DataSet:
        """The images on disk for this condition."""
        if condition == OUTLIERS:
            if self.outliers is None:
                raise UsageError("The condition 'outliers' needs images of unknown classes: give --outliers.")
            return self.outliers
        if condition.kind is ConditionKind.CORRUPTION and self.corrupted_folder is not None:
            return self.corrupted_images(condition)
        return self.selected

    @property
    def fingerprint(self) -> str:
        """A hash of the selected images and their places, and of how models see them."""
        return digest(self.selected.fingerprint, self.indices, *self._prepared)

    def source(self, condition: Condition) -> tuple[str, int]:
        """A name for the images on disk for this condition and for what makes others of them; how many there are."""
        images = self.images(condition)
        return digest(images.fingerprint, self.indices, *self._making(condition)), len(images)

    @property
    def _prepared(self) -> tuple[str, ...]:
        """Nothing for images as they are, so that older folders keep their names."""
        return ("preprocessed",) if self.preprocessed else ()

    def _making(self, condition: Condition) -> tuple[str, ...]:
        """What decides, beside the images on disk, what a model is shown."""
        if condition == OUTLIERS:
            return ()
        if condition.kind is not ConditionKind.CORRUPTION:
            return self._prepared
        return (*self._prepared, version()) if self.corrupted_folder is None else ()

    def clean(self, model: PixelModel) -> Tensor:
        """The selected images, preprocessed for the model.

        Raises:
            InputError: they, or the corrupted ones, are crops for a network that sees another size.
        """
        self._check_size(model)
        return model_pixels(model, self.selected, preprocessed=self.preprocessed)

    def corrupted(self, model: PixelModel, clean: Tensor, condition: Condition, seed: int) -> Tensor:
        """The selected images under a corruption, preprocessed for the model."""
        severity = round(condition.strength)
        if self.corrupted_folder is None:
            return corrupted(clean, condition.name, severity, self.indices, seed)
        return model_pixels(model, self.corrupted_images(condition), preprocessed=True)

    def _check_size(self, model: PixelModel) -> None:
        if self.crop_size is None or self.crop_size == model.size:
            return
        own, its = (f"{width} x {height}" for height, width in (self.crop_size, model.size))
        raise InputError(
            f"{self.corrupted_folder or self.data.path} has crops of {own} pixels, but {model.label} sees {its}: "
            "make crops for it with attnaudit corrupt."
        )

    def corrupted_images(self, condition: Condition) -> DataSet:
        """The selected images from the folder of corrupted images.

        Raises:
            InputError: they are others than the clean images, as far as labels, masks or the folder itself can tell.
        """
        folder = Path(self.corrupted_folder or ".")
        found = self.data.another(corrupted_place(folder, condition.name, round(condition.strength)))
        if not found.same_truth(self.data):
            raise InputError(
                f"The images of {found.path} ({len(found)}) and {self.data.path} ({len(self.data)}) differ in number "
                "or order: give the clean images of the same data set, such as clean.parquet from attnaudit corrupt."
            )
        if not self._belongs:
            raise InputError(
                f"{folder} was made from other images than those of {self.data.path}: give the images from which it "
                "was made, or none, so that its clean.parquet is taken."
            )
        return found.select(self.indices)

    @cached_property
    def _belongs(self) -> bool:
        """Whether the corrupted images are these: looked up once, because all clean ones are read for it."""
        return self.corrupted_folder is None or made_from(self.corrupted_folder, self.data)


def model_pixels(
    model: PixelModel, images: EncodedImages, *, preprocessed: bool = False
) -> UInt8[Tensor, "images 3 height width"]:
    """The images, preprocessed for a model, in memory as one byte per channel."""
    return torch.stack(images.map(partial(model.pixels, preprocessed=preprocessed)))


def drawn_indices(total: int, limit: int | None, seed: int) -> tuple[int, ...]:
    """`limit` random indices below `total`, in order; all if None."""
    if limit is None or limit >= total:
        return tuple(range(total))
    return tuple(sorted(random.Random(seed).sample(range(total), limit)))


def batches(count: int, size: int) -> Sequence[slice]:
    """Consecutive slices of at most `size`."""
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]
