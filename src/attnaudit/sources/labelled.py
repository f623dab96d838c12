"""Images with class labels: a folder per class (as in ImageNet), or Parquet with `img` and `label` (as on the hub)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import torch
from jaxtyping import Int64
from torch import Tensor

from attnaudit.display import counted, readable
from attnaudit.errors import InputError
from attnaudit.sources.data import given_or_default
from attnaudit.sources.encoded_images import (
    PICTURES,
    EncodedImages,
    class_names,
    encoded_column,
    parquet_files,
    read_parquet,
)
from attnaudit.sources.images import SUFFIXES

_LABELS = ("label", "labels", "fine_label")
#: The images in the data folder, by number of classes.
_DEFAULTS = {10: "cifar10/test.parquet", 1000: "imagenet_val"}


@dataclass(frozen=True)
class LabelledImages(EncodedImages):
    """Encoded images with class numbers.

    Of images that were selected from others, `selected_classes` is the number of classes of all of them: a few may lack
    the last class, which is still one of the data.
    """

    labels: Int64[Tensor, "images"]
    names: tuple[str, ...] | None = None
    selected_classes: int | None = None

    @property
    def classes(self) -> int:
        """The number of class names, or else one more than the largest class number."""
        if self.names is not None:
            return len(self.names)
        return int(self.labels.max()) + 1 if self.selected_classes is None else self.selected_classes

    def truth(self) -> Iterator[bytes]:
        """The labels."""
        yield self.labels.numpy().tobytes()

    def another(self, path: Path) -> LabelledImages:
        """Images of the same kind from another place."""
        return read_labelled(path)

    def columns(self, height: int, width: int) -> dict[str, list[int]]:
        """What is right to say of crops of this size, as columns of Parquet."""
        return {"label": self.labels.tolist()}

    def select(self, indices: Sequence[int]) -> LabelledImages:
        """The images with these indices, of as many classes as there are here."""
        encoded = [self.encoded[index] for index in indices]
        return replace(self, encoded=encoded, labels=self.labels[list(indices)], selected_classes=self.classes)


def read_labelled(path: Path) -> LabelledImages:
    """A Parquet file, or a folder with a folder of images per class.

    Raises:
        InputError: the path does not exist, or has wrong columns or fewer than two classes.
    """
    if path.is_dir():
        found = _from_folders(path)
    elif path.is_file():
        found = _from_parquet([path])
    else:
        raise InputError(f"{path} does not exist: give a Parquet file or a folder of class folders.")
    return _checked(found)


def labelled_for(place: Path | None, classes: int) -> LabelledImages:
    """The images of a Parquet file or a folder, or those of the data folder for a model of that many classes.

    Raises:
        InputError: there are none.
    """
    return read_labelled(given_or_default(place, classes, _DEFAULTS, "labelled images for"))


def training_and_test(folder: Path) -> tuple[LabelledImages, LabelledImages]:
    """The training and the test half: `train*.parquet` and `test*.parquet`, or the folders `train/` and `val/`."""
    if not folder.is_dir():
        raise InputError(
            f"{folder} is not a folder: give one with train*.parquet and test*.parquet, or with train/ and val/."
        )
    train = _checked(_half(folder, ("train",)))
    test = _checked(_half(folder, ("test", "val", "validation"), train.names))
    if test.classes > train.classes:
        raise InputError(f"{test.path} has {test.classes} classes, but {train.path} only {train.classes}.")
    return train, test


def _half(folder: Path, names: Sequence[str], classes: Sequence[str] | None = None) -> LabelledImages:
    for name in names:
        if (folder / name).is_dir():
            return _from_folders(folder / name, classes)
        if files := parquet_files(folder, name):
            return _from_parquet(files)
    wanted = " or ".join(f"{name}*.parquet or {name}/" for name in names)
    raise InputError(f"{folder} has no {wanted}.")


def _checked(found: LabelledImages) -> LabelledImages:
    present = len(set(found.labels.tolist()))
    if present < 2:
        got = f"{counted(len(found), 'image')} of {present} {'class' if present == 1 else 'classes'}"
        raise InputError(f"{found.path} must have at least 2 classes, got {got}.")
    if int(found.labels.min()) < 0:
        raise InputError(f"{found.path} has images without a label ({int(found.labels.min())}).")
    return found


def _from_folders(folder: Path, classes: Sequence[str] | None = None) -> LabelledImages:
    """Number classes by name, numerically if all names are numbers, or in the given order."""
    present = {readable(entry.name): entry for entry in folder.iterdir() if entry.is_dir()}
    if not present:
        raise InputError(f"{folder} has no class folders: put images into one folder per class.")
    if classes is None:
        classes = sorted(present, key=int) if all(name.isdecimal() for name in present) else sorted(present)
    if unknown := sorted(set(present) - set(classes)):
        raise InputError(f"{folder} has classes that the training half lacks: {', '.join(unknown[:3])}.")
    files: list[Path] = []
    labels: list[int] = []
    for number, name in enumerate(classes):
        inside = present[name].rglob("*") if name in present else []
        own = sorted(p for p in inside if p.suffix.lower() in SUFFIXES and p.is_file())
        files += own
        labels += [number] * len(own)
    return LabelledImages(folder, files, torch.tensor(labels, dtype=torch.int64), tuple(classes))


def _from_parquet(files: Sequence[Path]) -> LabelledImages:
    table = read_parquet(files)
    columns = [next((c for c in wanted if c in table.column_names), None) for wanted in (PICTURES, _LABELS)]
    if None in columns:
        raise InputError(f"{files[0]} must have columns img and label, got {', '.join(table.column_names)}.")
    picture, label = map(str, columns)
    encoded, labels = encoded_column(table, picture, files[0]), table[label]
    if labels.null_count or not pa.types.is_integer(labels.type):
        found = f"{labels.null_count} empty labels" if labels.null_count else f"labels of type {labels.type}"
        raise InputError(f"{files[0]}: column {label} must contain integers ≥ 0, got {found}.")
    numbers = torch.tensor(labels.to_pylist(), dtype=torch.int64)
    return LabelledImages(files[0], encoded, numbers, class_names(table))
