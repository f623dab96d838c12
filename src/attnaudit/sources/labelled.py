"""Images with class labels: a folder per class (as in ImageNet), or Parquet with `img` and `label` (as on the hub)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from jaxtyping import Int64, UInt8
from PIL import Image
from torch import Tensor

from attnaudit.display import readable
from attnaudit.errors import ImageError, InputError, UsageError, first_line
from attnaudit.numerics.digest import content_digest
from attnaudit.sources.data import VARIABLE, data_file
from attnaudit.sources.decoding import decode_image, quiet_decoders, read_encoded
from attnaudit.sources.images import SUFFIXES
from attnaudit.sources.preprocess import centre_crop

_PICTURES, _LABELS = ("img", "image"), ("label", "labels", "fine_label")
_THREADS = 8
#: Data sets up to this many bytes are hashed whole, at about 0.8 GB per second: CIFAR-10, but not ImageNet, whose
#: 140 GB would take minutes or hours at every start.
_READ_WHOLE = 2**31
#: The metadata key under which we write class names into a Parquet file, one per line.
NAMES = b"attnaudit.classes"

#: The images in the data folder, by number of classes.
_DEFAULTS = {10: "cifar10/test.parquet", 1000: "imagenet_val"}

Made = TypeVar("Made")


@dataclass(frozen=True)
class LabelledImages:
    """Encoded images (bytes or files) with class numbers, decoded on access."""

    path: Path
    encoded: Sequence[bytes | Path]
    labels: Int64[Tensor, "images"]
    names: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.encoded)

    @property
    def classes(self) -> int:
        """The number of class names, or else one more than the largest class number."""
        return int(self.labels.max()) + 1 if self.names is None else len(self.names)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of labels and contents, the same on every machine and for files and Parquet.

        For data too large to read at every start, a hash of file names, sizes and modification times instead: it
        notices an edit, but a copy with new modification times counts as different images.
        """
        try:
            return content_digest(chain([self.labels.numpy().tobytes()], self._contents()))
        except OSError as error:
            raise InputError(f"Image {error.filename} cannot be read ({error.strerror}).") from error

    def _contents(self) -> Iterator[bytes]:
        """The contribution of each image to the fingerprint."""
        files = [entry for entry in self.encoded if isinstance(entry, Path)]
        states = [file.stat() for file in files]
        if sum(state.st_size for state in states) > _READ_WHOLE:
            for file, state in zip(files, states, strict=True):
                yield f"{file.name}:{state.st_size}:{state.st_mtime_ns};".encode()
        else:
            for entry in self.encoded:
                yield entry.read_bytes() if isinstance(entry, Path) else entry

    def image(self, index: int) -> Image.Image:
        """Image number `index`, as RGB."""
        entry = self.encoded[index]
        name = f"number {index} of {self.path}" if isinstance(entry, bytes) else str(entry)
        try:
            return decode_image(entry if isinstance(entry, bytes) else read_encoded(entry))
        except OSError as error:
            raise InputError(f"Image {name} cannot be read ({error.strerror}).") from error
        except ImageError as error:
            raise InputError(f"Image {name} cannot be read ({error}).") from error
        except UsageError as error:
            raise UsageError(f"Image {name}: {error}") from error

    def map(self, function: Callable[[Image.Image], Made]) -> list[Made]:
        """The results of `function` for every image, in order, computed by several threads."""
        with quiet_decoders(), ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(lambda index: function(self.image(index)), range(len(self))))

    def pixels(self, size: int) -> UInt8[Tensor, "images 3 size size"]:
        """The centre crops of all images, in memory."""
        return torch.from_numpy(np.stack(self.map(partial(centre_crop, size=size))))

    def first(self, count: int | None) -> LabelledImages:
        """The first `count` images; all if None."""
        if count is None or count >= len(self):
            return self
        return self.select(range(count))

    def evenly_spaced(self, count: int | None) -> LabelledImages:
        """`count` evenly spaced images, so that images sorted by class keep every class; all if None."""
        if count is None or count >= len(self):
            return self
        return self.select([number * len(self) // count for number in range(count)])

    def select(self, indices: Sequence[int]) -> LabelledImages:
        """The images with these indices."""
        encoded = [self.encoded[index] for index in indices]
        return LabelledImages(self.path, encoded, self.labels[list(indices)], self.names)


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
    found = place or data_file(_DEFAULTS.get(classes, "?"))
    if found is None:
        raise InputError(
            f"No labelled images for {classes} classes were found: give --images DIR or --parquet FILE, or set "
            f"{VARIABLE} to the data folder."
        )
    return read_labelled(found)


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
        if files := sorted(folder.glob(f"{name}*.parquet")):
            return _from_parquet(files)
    wanted = " or ".join(f"{name}*.parquet or {name}/" for name in names)
    raise InputError(f"{folder} has no {wanted}.")


def _checked(found: LabelledImages) -> LabelledImages:
    present = len(set(found.labels.tolist()))
    if present < 2:
        raise InputError(f"{found.path} must have at least 2 classes, got {len(found)} images of {present}.")
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
    try:
        table = pa.concat_tables([pq.read_table(file) for file in files])
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise InputError(f"{files[0]} cannot be read as Parquet ({first_line(error)}).") from error
    columns = [next((c for c in wanted if c in table.column_names), None) for wanted in (_PICTURES, _LABELS)]
    if None in columns:
        raise InputError(f"{files[0]} must have columns img and label, got {', '.join(table.column_names)}.")
    images, labels = (table[str(column)] for column in columns)
    entries = [
        entry["bytes"] if isinstance(entry, dict) and "bytes" in entry else entry for entry in images.to_pylist()
    ]
    if not all(isinstance(entry, bytes) for entry in entries):
        raise InputError(f"{files[0]}: column {columns[0]} does not contain encoded images.")
    if labels.null_count or not pa.types.is_integer(labels.type):
        found = f"{labels.null_count} empty labels" if labels.null_count else f"labels of type {labels.type}"
        raise InputError(f"{files[0]}: column {columns[1]} must contain integers ≥ 0, got {found}.")
    names = (table.schema.metadata or {}).get(NAMES)
    return LabelledImages(
        files[0],
        entries,
        torch.tensor(labels.to_pylist(), dtype=torch.int64),
        None if names is None else tuple(names.decode(errors="replace").split("\n")),
    )
