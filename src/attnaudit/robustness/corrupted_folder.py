"""A folder that `attnaudit corrupt` wrote: which files it has, and from which images it was made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attnaudit.records.identity import read_header
from attnaudit.robustness.corruptions import CORRUPTIONS
from attnaudit.sources.labelled import LabelledImages
from attnaudit.sources.segmented import SegmentedImages

#: The file of the clean images, next to the folders of the corruptions.
CLEAN_FILE = "clean.parquet"
#: The file that says from which images a folder was made, and how.
IDENTITY_FILE = "set.json"


def folder_of_set(images: Path) -> Path | None:
    """The folder of ours to which a file of images belongs, clean or corrupted; None for all other images."""
    images = images.absolute()
    folders = [images.parent] if images.name == CLEAN_FILE else []
    folders += [images.parent.parent] if images.parent.name in CORRUPTIONS else []
    return next((folder for folder in folders if images.is_file() and (folder / IDENTITY_FILE).is_file()), None)


def identity_of_set(folder: Path) -> dict[str, Any] | None:
    """From which images a folder was made, and how; None if we did not write it.

    Raises:
        RunFolderError: the file that says so is damaged.
    """
    file = folder / IDENTITY_FILE
    return read_header(file)["identity"] if file.exists() else None


def classes_of(folder: Path) -> int | None:
    """The number of classes of the data set from which a folder was made; None if we did not write the folder."""
    found = (identity_of_set(folder) or {}).get("classes")
    return found if isinstance(found, int) else None


def size_of(folder: Path) -> tuple[int, int] | None:
    """Height and width of the crops in a folder; None if we did not write it."""
    found = (identity_of_set(folder) or {}).get("size")
    return (found[0], found[1]) if isinstance(found, list) and len(found) == 2 else None


def made_from(folder: Path, data: LabelledImages | SegmentedImages) -> bool:
    """Whether a folder holds these images, corrupted: all that it was made from, or its own clean ones.

    True of a folder that does not say from what it was made, as one that we did not write.
    """
    identity = identity_of_set(folder)
    if identity is None or identity.get("data") == data.fingerprint:
        return identity is None or identity.get("images") == list(range(len(data)))
    clean = folder / CLEAN_FILE
    return clean.is_file() and data.another(clean).fingerprint == data.fingerprint
