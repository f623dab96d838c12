"""An entry of the atlas: where the files of a model are, how they become a network, and what it reads.

A model reads one of four things:

* ordinary text, if nothing is said: its folder holds a tokenizer;
* texts of its own kind, such as proteins: `texts` gives some;
* images: its folder holds `preprocessor_config.json`, or `image` says how they are prepared;
* anything else, such as sound: `samples` gives tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from torch import nn

from attnaudit.numerics.digest import digest
from attnaudit.sources.model import Sample
from attnaudit.sources.preprocess import ImagePreparation

RESOURCES = Path(__file__).parent / "resources"


@dataclass(frozen=True)
class PackagePart:
    """A file inside the archive of a package, which is named as pip names it: `name==version`.

    The archive is a wheel, or with `sdist` the source archive. The path begins below the root of the archive; for a
    source archive, below its folder `name-version`.
    """

    requirement: str
    path: str
    sdist: bool = False


@dataclass(frozen=True)
class KnownFile:
    """A file with its SHA-256; it is made of parts inside packages, or of none if it must be at hand."""

    name: str
    sha256: str
    parts: tuple[PackagePart, ...] = ()


#: Fills an empty folder from the files of a model by name, and returns what there is to say.
ConvertModel = Callable[[Mapping[str, Path], Path], tuple[str, ...]]
#: The network of such a folder: with its weights if the seed is None, otherwise untrained. Random numbers are seeded.
BuildModel = Callable[[Path, int | None], nn.Module]


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
        convert: how they become a folder with `config.json`, `model.safetensors` and a tokenizer, if it has one.
        check: raises `WeightsError` if the converted folder does not act like the trained model.
        build: how the folder becomes a network; None if transformers reads the folder.
        samples: inputs of its own field, as tensors, from its folder; it has no tokenizer and reads no image.
        texts: texts of its own kind, each an input, from its folder; ordinary ones mean nothing to its tokenizer.
        image: how images are prepared, if the network is built by `build` and reads them.
        reads: `text`, `images`, or a few words, such as `16 kHz speech`.
        hub: its id on the Hugging Face hub, if it is known to be there; nothing is fetched from it.
    """

    name: str
    field: str
    architecture: str
    licence: str
    megabytes: int
    files: tuple[KnownFile, ...]
    convert: ConvertModel
    check: Callable[[Path], None]
    build: BuildModel | None = None
    samples: Callable[[Path], Sequence[Sample]] | None = None
    texts: Callable[[Path], Sequence[str]] | None = None
    image: ImagePreparation | None = None
    reads: str = "text"
    hub: str | None = None

    def __post_init__(self) -> None:
        given = {
            name
            for name, own in (("samples", self.samples), ("texts", self.texts), ("image", self.image))
            if own is not None
        }
        if len(given) > 1:
            raise ValueError(f"{self.name} reads one kind of inputs, but has {' and '.join(sorted(given))}.")
        if (self.build is not None) != bool(given & {"samples", "image"}):
            raise ValueError(f"{self.name} needs both or neither of build, and samples or image.")
        if (self.image is not None) > (self.reads == "images"):
            raise ValueError(f"{self.name} has image, but reads {self.reads}.")

    @property
    def key(self) -> str:
        """The name of its folder in the cache, which is another one for other files."""
        return f"{self.name}-{digest([file.sha256 for file in self.files])[:12]}"

    @property
    def parts(self) -> tuple[PackagePart, ...]:
        """What is taken out of packages; nothing if its files are in none."""
        return tuple(part for file in self.files for part in file.parts)

    @property
    def requirements(self) -> tuple[str, ...]:
        """The packages that hold its files."""
        return tuple(dict.fromkeys(part.requirement for part in self.parts))


def resource_texts(name: str) -> Callable[[Path], Sequence[str]]:
    """The lines of a file of `resources`, as `texts` of an entry; those that begin with `#` say where they are from."""
    return partial(_resource_lines, RESOURCES / name)


def _resource_lines(file: Path, folder: Path) -> list[str]:
    lines = file.read_text("utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]
