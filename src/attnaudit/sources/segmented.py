"""Pictures with a mask that names the class of every pixel: ADE20K's folders, or Parquet with `image` and `mask`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

from attnaudit.display import enumerated
from attnaudit.errors import InputError
from attnaudit.sources.data import given_or_default
from attnaudit.sources.decoding import decode_mask
from attnaudit.sources.encoded_images import (
    PICTURES,
    Encoded,
    EncodedImages,
    class_names,
    contents,
    encoded_column,
    encoded_without_loss,
    parquet_files,
    read_parquet,
)
from attnaudit.sources.images import SUFFIXES
from attnaudit.sources.preprocess import centre_crop_mask

#: The number of pixels without a class, in every mask that leaves this file.
UNLABELLED = 255
#: Classes are numbered in a byte, of which two values are for pixels without one.
MOST_CLASSES = 254
#: Columns of masks: ours and CamVid's, and that of ADE20K, whose numbers begin with 1.
_MASK, _ANNOTATION = "mask", "annotation"
#: The names of a half in a folder.
_HALVES = {"train": ("training", "train"), "test": ("validation", "val", "test")}
#: The pictures in the data folder, by number of classes.
_DEFAULTS = {11: "camvid/test.parquet", 150: "ade20k"}


@dataclass(frozen=True)
class Numbering:
    """How a mask numbers classes: from `first` on; `unlabelled` is written in it, and 255 always means the same."""

    first: int
    unlabelled: int

    def classes_of(self, written: UInt8[np.ndarray, "h w"], classes: int) -> UInt8[np.ndarray, "h w"]:
        """The classes from 0 on, and `UNLABELLED`.

        Raises:
            InputError: a number is none of them; the message lacks the name of the mask.
        """
        ignored = (written == self.unlabelled) | (written == UNLABELLED)
        found = np.where(ignored, UNLABELLED, written.astype(np.int16) - self.first).astype(np.int16)
        outside = ~ignored & ((found < 0) | (found >= classes))
        if outside.any():
            last = self.first + classes - 1
            raise InputError(
                f"has a pixel of class {written[outside][0]}, but {classes} classes are numbered {self.first} to "
                f"{last}, and pixels without a class {self.unlabelled} or {UNLABELLED}: mend the mask, or train "
                "the network with model.classes set to the number of classes."
            )
        return found.astype(np.uint8)


def from_one() -> Numbering:
    """ADE20K's numbers: 0 is unlabelled, and classes begin with 1."""
    return Numbering(1, 0)


def from_zero(classes: int) -> Numbering:
    """CamVid's: classes begin with 0, and the number after the last one is unlabelled."""
    return Numbering(0, classes)


@dataclass(frozen=True)
class SegmentedImages(EncodedImages):
    """Encoded pictures, each with an encoded mask of the same size."""

    masks: Sequence[Encoded]
    classes: int
    numbering: Numbering
    names: tuple[str, ...] | None = None

    def truth(self) -> Iterator[bytes]:
        """The masks, and what their numbers mean."""
        yield f"{self.classes} classes, {self.numbering}".encode()
        yield from contents(self.masks)

    def another(self, path: Path) -> SegmentedImages:
        """Pictures of the same classes from another place."""
        return read_segmented(path, self.classes)

    def columns(self, height: int, width: int) -> dict[str, list[bytes]]:
        """The masks of crops of this size, as columns of Parquet."""
        masks = self.mask_pixels(height, width).numpy()
        return {"mask": [encoded_without_loss(Image.fromarray(mask), "PNG") for mask in masks]}

    def select(self, indices: Sequence[int]) -> SegmentedImages:
        """The pictures with these indices."""
        encoded, masks = ([entries[index] for index in indices] for entries in (self.encoded, self.masks))
        return SegmentedImages(self.path, encoded, masks, self.classes, self.numbering, self.names)

    def mask(self, index: int) -> Image.Image:
        """The mask of picture number `index`: classes from 0 on, and `UNLABELLED`.

        Raises:
            InputError: it cannot be read, is of another size than the picture, or has a class that does not exist.
        """
        entry, name = self.masks[index], f"The mask of image {self.name(index)}"
        found, size = self.decoded(entry, name, decode_mask), self.image(index).size
        if found.size != size:
            own, its = ("{} x {}".format(*sides) for sides in (found.size, size))
            raise InputError(f"{name} has {own} pixels, but the image has {its}: give masks of the same size.")
        try:
            return Image.fromarray(self.numbering.classes_of(np.asarray(found), self.classes))
        except InputError as error:
            raise InputError(f"{name} {error}") from error

    def has_labels(self, height: int, width: int) -> bool:
        """Whether a pixel of a centre crop has a class; looks no further than the first one."""
        crops = (centre_crop_mask(self.mask(index), height, width) for index in range(len(self)))
        return any(bool((crop != UNLABELLED).any()) for crop in crops)

    def mask_pixels(self, height: int, width: int | None = None) -> UInt8[Tensor, "images height width"]:
        """The centre crops of all masks, in memory, cut as the pictures are."""
        return torch.from_numpy(
            np.stack(self.for_each(lambda index: centre_crop_mask(self.mask(index), height, width)))
        )


def read_segmented(path: Path, classes: int) -> SegmentedImages:
    """A Parquet file, or the validation half of a folder in ADE20K's layout.

    Raises:
        InputError: the path does not exist, lacks a column or a mask, or there are more classes than a byte numbers.
    """
    if path.is_dir():
        return _half(path, "test", classes)
    if path.is_file():
        return _from_parquet([path], classes)
    raise InputError(f"{path} does not exist: give a Parquet file, or a folder with images/ and annotations/.")


def segmented_for(place: Path | None, classes: int) -> SegmentedImages:
    """The pictures of a Parquet file or a folder, or those of the data folder for a model of that many classes.

    Raises:
        InputError: there are none.
    """
    return read_segmented(given_or_default(place, classes, _DEFAULTS, "pictures with masks of"), classes)


def training_and_test_masks(folder: Path, classes: int) -> tuple[SegmentedImages, SegmentedImages]:
    """The training and the test half: `train*.parquet` and `test*.parquet`, or ADE20K's training/ and validation/."""
    if not folder.is_dir():
        raise InputError(
            f"{folder} is not a folder: give one with train*.parquet and test*.parquet, or with images/ and "
            "annotations/."
        )
    return _half(folder, "train", classes), _half(folder, "test", classes)


def _half(folder: Path, half: str, classes: int) -> SegmentedImages:
    for name in _HALVES[half]:
        if (folder / "images" / name).is_dir():
            return _from_folders(folder / "images" / name, folder / "annotations" / name, classes)
    if files := parquet_files(folder, half):
        return _from_parquet(files, classes)
    raise InputError(f"{folder} has neither images/{_HALVES[half][0]}/ nor {half}*.parquet.")


def _from_folders(pictures: Path, annotations: Path, classes: int) -> SegmentedImages:
    """Each picture has a PNG of its name below `annotations`."""
    files = sorted(p for p in pictures.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
    if not files:
        raise InputError(f"{pictures} has no images ({', '.join(sorted(SUFFIXES))}).")
    masks = [annotations / file.relative_to(pictures).with_suffix(".png") for file in files]
    for file, mask in zip(files, masks, strict=True):
        if not mask.is_file():
            raise InputError(f"{file} has no mask: {mask} does not exist.")
    return _checked(SegmentedImages(pictures, files, masks, classes, from_one()))


def _from_parquet(files: Sequence[Path], classes: int) -> SegmentedImages:
    table = read_parquet(files)
    columns = [
        next((c for c in wanted if c in table.column_names), None) for wanted in (PICTURES, (_MASK, _ANNOTATION))
    ]
    if None in columns:
        names = enumerated(table.column_names, "and")
        raise InputError(f"{files[0]} must have columns image and mask, with an encoded mask for each, got {names}.")
    picture, mask = map(str, columns)
    if pa.types.is_integer(table[mask].type):
        raise InputError(f"{files[0]}: the column {mask} has numbers, and must have an encoded mask for each image.")
    if missing := table[mask].null_count:
        raise InputError(f"{files[0]}: {missing} of {len(table)} images have no mask (column {mask}).")
    encoded, masks = (encoded_column(table, column, files[0]) for column in (picture, mask))
    numbering = from_one() if mask == _ANNOTATION else from_zero(classes)
    return _checked(SegmentedImages(files[0], encoded, masks, classes, numbering, class_names(table)))


def _checked(found: SegmentedImages) -> SegmentedImages:
    if not 2 <= found.classes <= MOST_CLASSES:
        raise InputError(f"Masks have 2 to {MOST_CLASSES} classes, got {found.classes}.")
    if not len(found):
        raise InputError(f"{found.path} has no images.")
    if found.names is not None and len(found.names) < found.classes:
        raise InputError(
            f"{found.path} names {len(found.names)} classes of {found.classes}: name all of them, or none."
        )
    return found
