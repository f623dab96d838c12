"""An entry of the atlas: where the files of a model are, what is in them, and how it is shown that it is trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from attnaudit.numerics.digest import digest


@dataclass(frozen=True)
class PackagePart:
    """A file inside the wheel of a package, which is named as pip names it: `name==version`."""

    requirement: str
    path: str


@dataclass(frozen=True)
class KnownFile:
    """A file with its SHA-256; it is made of parts inside packages, or of none if it must be at hand."""

    name: str
    sha256: str
    parts: tuple[PackagePart, ...] = ()


#: Fills an empty folder in Hugging Face layout from the files of a model by name, and returns what there is to say.
ConvertModel = Callable[[Mapping[str, Path], Path], tuple[str, ...]]


@dataclass(frozen=True)
class AtlasModel:
    """A trained model.

    Args:
        name: what users call it.
        field: what it was trained on, such as `text`.
        architecture: a few words.
        licence: of the weights.
        megabytes: the size of what is downloaded.
        files: all that are read.
        convert: how they become a folder in Hugging Face layout.
        check: raises `WeightsError` if the converted folder does not act like the trained model.
        reads: what its texts are, if they are not in a human language.
        samples: the file of the folder with texts that it can read, if ordinary ones will not do.
    """

    name: str
    field: str
    architecture: str
    licence: str
    megabytes: int
    files: tuple[KnownFile, ...]
    convert: ConvertModel
    check: Callable[[Path], None]
    reads: str = "text"
    samples: str | None = None

    @property
    def key(self) -> str:
        """The name of its folder in the cache, which is another one for other files."""
        return f"{self.name}-{digest([file.sha256 for file in self.files])[:12]}"

    @property
    def requirements(self) -> tuple[str, ...]:
        """The packages that hold its files; none if they are in no package."""
        return tuple(dict.fromkeys(part.requirement for file in self.files for part in file.parts))
