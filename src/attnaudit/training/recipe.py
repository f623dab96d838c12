"""What a training depends on: model, data, optimiser, augmentation, what is monitored. For images, and for text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Literal

from attnaudit.errors import UsageError
from attnaudit.records.typed_settings import check_range, settings_from
from attnaudit.sources.architecture import Architecture
from attnaudit.sources.decoder import DecoderArchitecture
from attnaudit.training.recipe_file import recipe_content
from attnaudit.training.watch import ImageWatch, TextWatch, Watch


@dataclass(frozen=True)
class Optimiser:
    """timm's optimiser by name, with a cosine from `rate` to `smallest_rate` after a linear warm-up."""

    name: str = "adamw"
    rate: float = 5e-4
    weight_decay: float = 0.05
    warmup_epochs: float = 5
    warmup_rate: float = 1e-6
    smallest_rate: float = 1e-5
    clip: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name.lower())  # timm takes either, and a run is the same with both
        check_range("optimiser", 0, open_low=True, rate=self.rate, clip=self.clip)
        check_range("optimiser", 0, weight_decay=self.weight_decay, warmup_epochs=self.warmup_epochs)
        check_range("optimiser", 0, warmup_rate=self.warmup_rate, smallest_rate=self.smallest_rate)


@dataclass(frozen=True)
class Augmentation:
    """What training images go through.

    `timm` is timm's transform for training (random crop, flip, colour, `auto_augment`), in worker processes;
    `crop-flip` pads by `padding`, crops and flips on the device, for images that all fit into memory; `none` neither.
    With each of them go `distort`, the share of images that one of TrivialAugment's distortions is applied to on the
    device, and timm's erasing, mixup, cutmix (in a `mix_share` of batches) and label smoothing.
    """

    kind: Literal["timm", "crop-flip", "none"] = "crop-flip"
    padding: int = 4
    auto_augment: str | None = None
    colour_jitter: float = 0.3
    distort: float = 0.0
    erase: float = 0.0
    mixup: float = 0.0
    cutmix: float = 0.0
    mix_share: float = 1.0
    smoothing: float = 0.1

    def __post_init__(self) -> None:
        if self.auto_augment is not None and self.kind != "timm":
            raise UsageError(f"augmentation: auto_augment is for kind timm; {self.kind} has distort.")
        check_range("augmentation", 0, padding=self.padding, mixup=self.mixup, cutmix=self.cutmix)
        check_range("augmentation", 0, 1, distort=self.distort, erase=self.erase)
        check_range("augmentation", 0, 1, mix_share=self.mix_share, smoothing=self.smoothing)


@dataclass(frozen=True)
class Recipe:
    """A training of any kind. `name` and `about` say what it is for; `data` names a folder of `ATTNAUDIT_DATA`.

    `average` is the decay of the exponential moving average of the weights, None for none; `ksvd_weight` is η of
    Primal-Attention's regulariser η·J².
    """

    #: What a batch consists of.
    examples: ClassVar[str]

    name: str
    about: str = ""
    data: str = ""
    model: Architecture | DecoderArchitecture = field(default_factory=Architecture)
    epochs: int = 100
    batch: int = 512
    precision: Literal["bf16", "fp32"] = "bf16"
    optimiser: Optimiser = field(default_factory=Optimiser)
    average: float | None = None
    ksvd_weight: float = 0.0
    monitor: Watch = field(default_factory=Watch)

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1:
            one = self.examples.removesuffix("s")
            raise UsageError(
                f"Recipe {self.name} needs an epoch and a {one} at least, not {self.epochs}, {self.batch}."
            )
        check_range(f"recipe {self.name}", 0, 1, average=self.average)
        if self.ksvd_weight and self.model.attention != "primal":
            raise UsageError(f"Recipe {self.name} has a ksvd_weight, but its attention is {self.model.attention}.")

    @property
    def identity(self) -> dict[str, Any]:
        """As plain data that JSON gives back unchanged."""
        return {**asdict(self), "model": self.model.content}

    @property
    def watched(self) -> int:
        """How many inputs of each half the monitor looks at."""
        raise NotImplementedError


@dataclass(frozen=True)
class ImageRecipe(Recipe):
    """A vision transformer that learns to name images."""

    examples = "images"

    data: str = "cifar10"
    model: Architecture = field(default_factory=Architecture)
    augmentation: Augmentation = field(default_factory=Augmentation)
    monitor: ImageWatch = field(default_factory=ImageWatch)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch % 2 and (self.augmentation.mixup or self.augmentation.cutmix):
            raise UsageError(f"Mixup pairs images, so recipe {self.name} needs an even batch, not {self.batch}.")

    @property
    def watched(self) -> int:
        """Images."""
        return self.monitor.images

    def for_classes(self, classes: int) -> ImageRecipe:
        """The same with as many classes as the data has."""
        return replace(self, model=replace(self.model, classes=classes))


@dataclass(frozen=True)
class TextRecipe(Recipe):
    """A language model that learns to continue a text.

    Its words are those that occur `min_count` times in the training half. It is tested on the test half as it is, and
    with a share `swap_rate` of the words that it reads swapped for "AAA".
    """

    examples = "contexts"

    task: Literal["text"] = "text"
    data: str = "wikitext"
    model: DecoderArchitecture = field(default_factory=DecoderArchitecture)
    min_count: int = 3
    swap_rate: float = 0.1
    monitor: TextWatch = field(default_factory=TextWatch)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.min_count < 1:
            raise UsageError(f"min_count is {self.min_count}: a word that is known occurs once at least.")
        if not 0 <= self.swap_rate <= 1:
            raise UsageError(f"swap_rate is {self.swap_rate}: it is a share of the words, from 0 to 1.")

    @property
    def watched(self) -> int:
        """Contexts."""
        return self.monitor.contexts

    def for_words(self, words: int) -> TextRecipe:
        """The same with as many words as the vocabulary has."""
        return replace(self, model=replace(self.model, vocabulary=words))


def read_recipe(name: str, changes: Sequence[str] = ()) -> ImageRecipe | TextRecipe:
    """A recipe of the package by name, or a YAML file, with changes such as `model.depth=6`; `task` says which kind."""
    content = recipe_content(name, changes)
    where = f"recipe {content['name']}"
    if not re.fullmatch(r"\w[\w.-]*", str(content["name"])):
        raise UsageError(f"The name of a recipe, {content['name']!r}, is one of a folder: letters, digits, - and _.")
    if content.get("task") == "text":
        return settings_from(TextRecipe, content, where)
    if (task := content.pop("task", "images")) != "images":
        raise UsageError(f"{where}: task is {task!r}; there is images, text.")
    return settings_from(ImageRecipe, content, where)
