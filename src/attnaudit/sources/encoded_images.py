"""Images as they are stored, in files or in a column of Parquet, decoded when they are needed."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Literal, Self, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

from attnaudit.errors import ImageError, InputError, UsageError, first_line
from attnaudit.numerics.digest import content_digest
from attnaudit.sources.decoding import decode_image, quiet_decoders, read_encoded
from attnaudit.sources.preprocess import centre_crop

_THREADS = 8
#: Data sets up to this many bytes are hashed whole, at about 0.8 GB per second: CIFAR-10, but not ImageNet, whose
#: 140 GB would take minutes or hours at every start.
_READ_WHOLE = 2**31
#: The names of the column of images in Parquet.
PICTURES = ("img", "image")
#: The metadata key under which we write class names into a Parquet file, one per line.
NAMES = b"attnaudit.classes"

Encoded = bytes | Path
Made = TypeVar("Made")


@dataclass(frozen=True)
class EncodedImages:
    """Encoded images (bytes or files), decoded on access; subclasses know what is right to say of them."""

    path: Path
    encoded: Sequence[Encoded]

    def __len__(self) -> int:
        return len(self.encoded)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of contents and of what is right, the same on every machine and for files and Parquet.

        For data too large to read at every start, a hash of file names, sizes and modification times instead: it
        notices an edit, but a copy with new modification times counts as different images.
        """
        try:
            return content_digest(chain(self.truth(), contents(self.encoded)))
        except OSError as error:
            raise InputError(f"Image {error.filename} cannot be read ({error.strerror}).") from error

    def truth(self) -> Iterator[bytes]:
        """What is right to say of the images, as bytes."""
        raise NotImplementedError

    def same_truth(self, other: EncodedImages) -> bool:
        """Whether the same is right to say of other images, which may be these, corrupted."""
        return len(self) == len(other) and list(self.truth()) == list(other.truth())

    def select(self, indices: Sequence[int]) -> Self:
        """The images with these indices."""
        raise NotImplementedError

    def name(self, index: int) -> str:
        """What errors call image number `index`."""
        entry = self.encoded[index]
        return f"number {index} of {self.path}" if isinstance(entry, bytes) else str(entry)

    def image(self, index: int) -> Image.Image:
        """Image number `index`, as RGB."""
        return self.decoded(self.encoded[index], f"Image {self.name(index)}", decode_image)

    def decoded(self, entry: Encoded, name: str, decode: Callable[[bytes], Made]) -> Made:
        """What `decode` makes of an entry; errors call it by its name."""
        try:
            return decode(entry if isinstance(entry, bytes) else read_encoded(entry))
        except OSError as error:
            raise InputError(f"{name} cannot be read ({error.strerror}).") from error
        except ImageError as error:
            raise InputError(f"{name} cannot be read ({error}).") from error
        except UsageError as error:
            raise UsageError(f"{name}: {error}") from error

    def map(self, function: Callable[[Image.Image], Made]) -> list[Made]:
        """The results of `function` for every image, in order, computed by several threads."""
        return self.for_each(lambda index: function(self.image(index)))

    def for_each(self, function: Callable[[int], Made]) -> list[Made]:
        """The results of `function` for every index, in order, computed by several threads."""
        with quiet_decoders(), ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(function, range(len(self))))

    def pixels(self, height: int, width: int | None = None) -> UInt8[Tensor, "images 3 height width"]:
        """The centre crops of all images, in memory; squares unless a width is given."""
        return torch.from_numpy(np.stack(self.map(partial(centre_crop, height=height, width=width))))

    def first(self, count: int | None) -> Self:
        """The first `count` images; all if None."""
        return self if count is None or count >= len(self) else self.select(range(count))

    def evenly_spaced(self, count: int | None) -> Self:
        """`count` evenly spaced images, so that images sorted by class keep every class; all if None."""
        if count is None or count >= len(self):
            return self
        return self.select([number * len(self) // count for number in range(count)])


def contents(entries: Sequence[Encoded]) -> Iterator[bytes]:
    """The contribution of each entry to a fingerprint."""
    files = [entry for entry in entries if isinstance(entry, Path)]
    states = [file.stat() for file in files]
    if sum(state.st_size for state in states) > _READ_WHOLE:
        for file, state in zip(files, states, strict=True):
            yield f"{file.name}:{state.st_size}:{state.st_mtime_ns};".encode()
    else:
        for entry in entries:
            yield entry.read_bytes() if isinstance(entry, Path) else entry


def parquet_files(folder: Path, half: str) -> list[Path]:
    """The files of one half of a data set, in the order of their names."""
    return sorted(file for file in folder.glob(f"{half}*.parquet") if file.is_file())


def read_parquet(files: Sequence[Path]) -> pa.Table:
    """The rows of all files.

    Raises:
        InputError: one of them is not Parquet, or has other columns.
    """
    try:
        return pa.concat_tables([pq.read_table(file) for file in files])
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise InputError(f"{files[0]} cannot be read as Parquet ({first_line(error)}).") from error


def encoded_column(table: pa.Table, column: str, file: Path) -> list[bytes]:
    """The encoded images of a column: bytes, or as on the hub a struct with them.

    Raises:
        InputError: it holds something else.
    """
    entries = [
        entry["bytes"] if isinstance(entry, dict) and "bytes" in entry else entry for entry in table[column].to_pylist()
    ]
    if not all(isinstance(entry, bytes) for entry in entries):
        raise InputError(f"{file}: column {column} does not contain encoded images.")
    return entries


def encoded_without_loss(image: Image.Image, kind: Literal["PNG", "WEBP"]) -> bytes:
    """The bytes of a file; WebP is a quarter smaller than PNG, but cannot hold the numbers of a mask."""
    buffer = io.BytesIO()
    image.save(buffer, kind, lossless=True)
    return buffer.getvalue()


def class_names(table: pa.Table) -> tuple[str, ...] | None:
    """The names of classes that a file of ours has."""
    names = (table.schema.metadata or {}).get(NAMES)
    return None if names is None else tuple(names.decode(errors="replace").split("\n"))
