"""Images from a folder: find them, choose some by seed, read them, and skip broken ones by name."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from attnaudit.display import readable
from attnaudit.errors import ImageError, InputError, ModelError, UsageError
from attnaudit.extras import optional
from attnaudit.numerics.digest import content_digest
from attnaudit.protocol import Protocol
from attnaudit.sources.decoding import decode_image, quiet_decoders, read_encoded
from attnaudit.sources.inputs import Prepared, cuts
from attnaudit.sources.model import LoadedModel

SUFFIXES = frozenset((".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm"))
SAMPLES = (
    "astronaut.png", "brick.png", "camera.png", "chelsea.png", "coffee.png", "coins.png", "grass.png", "gravel.png",
    "hubble_deep_field.jpg", "ihc.png", "moon.png", "motorcycle_left.png", "retina.jpg", "rocket.jpg",
)  # fmt: skip


@dataclass(frozen=True)
class ImageItem:
    """One image: its name in the evidence, its path, a hash of its bytes, and what it belongs to, if anything."""

    name: str
    path: Path
    fingerprint: str
    group: str = ""

    @staticmethod
    def of(path: Path, root: Path, *, by_folder: bool = False) -> ImageItem:
        """The image with its current hash; the path is absolute, so that other processes find it."""
        place = path.relative_to(root)
        group = readable(place.parent.as_posix()) if by_folder else ""
        try:
            return ImageItem(readable(place.as_posix()), path.absolute(), content_digest(_chunks(path)), group)
        except OSError as error:
            raise InputError(f"{path} cannot be read ({error.strerror}).") from error

    def read(self) -> bytes:
        """The encoded image, which must be what it was when the run began, because its rows are stored under its hash.

        Raises:
            ImageError: it is too large.
            InputError: it is gone or has changed.
        """
        try:
            content = read_encoded(self.path)
        except OSError as error:
            raise InputError(f"{self.path} cannot be read ({error.strerror}).") from error
        if content_digest([content]) != self.fingerprint:
            raise InputError(f"{self.path} has changed since the run began.")
        return content


def _chunks(path: Path) -> Iterator[bytes]:
    """The content of a file, a little at a time: there may be more of it than fits into memory."""
    with path.open("rb") as file:
        while chunk := file.read(2**20):
            yield chunk


def find_images(folder: Path) -> list[Path]:
    """Every image below a folder, in order of its path.

    Raises:
        InputError: there is no such folder, or no image in it.
    """
    if not folder.is_dir():
        fault = "is a file" if folder.exists() else "does not exist"
        raise InputError(f"The folder {folder} {fault}: give --images a folder of images.")
    found = sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
    if not found:
        raise InputError(f"{folder} and its subfolders have no images ({', '.join(sorted(SUFFIXES))}).")
    return found


def sample_images() -> list[Path]:
    """Photographs that come with scikit-image, for a first look without any data."""
    package = optional("skimage.data", "samples", "Auditing without --images")
    folder = Path(str(package.__file__)).parent
    return [folder / name for name in SAMPLES]


def choose_images(
    paths: Sequence[Path], root: Path, limit: int | None, seed: int, *, by_folder: bool = False
) -> tuple[ImageItem, ...]:
    """`limit` images, drawn as in the study: `random.sample(range(n), limit)` after seeding; all if None."""
    if limit is not None and limit < 1:
        raise UsageError(f"--limit must be ≥ 1, got {limit}.")
    if limit is not None and limit < len(paths):
        paths = [paths[place] for place in random.Random(seed).sample(range(len(paths)), limit)]
    return tuple(ImageItem.of(path, root, by_folder=by_folder) for path in paths)


@dataclass(frozen=True)
class ImageShard:
    """A few images that are read and run as one batch."""

    items: tuple[ImageItem, ...]

    @property
    def identity(self) -> list[tuple[str, str]]:
        """Names and content hashes."""
        return [(item.name, item.fingerprint) for item in self.items]

    @property
    def groups(self) -> dict[str, str]:
        """The folder of each image, if those of one folder belong together."""
        return {item.name: item.group for item in self.items if item.group}

    def prepare(self, model: LoadedModel, protocol: Protocol, room: int | None = None) -> Prepared:
        """Read and preprocess the images; those that cannot be decoded are skipped by name, changed ones are an error.

        Raises:
            UsageError: an image takes more than `room` to decode.
        """
        if model.preprocess is None:
            raise ModelError(f"{model.label} has no preprocessing for images: pass tensors instead.")
        preprocess = model.preprocess(protocol)
        tensors, names, skipped = [], [], []
        with quiet_decoders():
            for item in self.items:
                try:
                    tensors.append(preprocess(decode_image(item.read(), room)))
                    names.append(item.name)
                except ImageError as error:
                    skipped.append((item.name, f"cannot be decoded: {error}"))
                except UsageError as error:
                    raise UsageError(f"{item.name}: {error}") from error
        return Prepared(torch.stack(tensors) if tensors else None, tuple(names), tuple(skipped))


def image_shards(items: Sequence[ImageItem], size: int) -> tuple[ImageShard, ...]:
    """Split images into shards."""
    return tuple(ImageShard(tuple(items[own])) for own in cuts(len(items), size))
