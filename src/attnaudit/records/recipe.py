"""What a training depends on: model, data, optimiser, augmentation, what is monitored.

For images that are named, for pictures that are segmented, for text, and for sentences that are named.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Literal

from pydantic import Discriminator

from attnaudit.errors import SettingError
from attnaudit.records.architecture import Architecture, DecoderArchitecture, EncoderArchitecture
from attnaudit.records.later_fields import added_later
from attnaudit.records.ranges import check_range


@dataclass(frozen=True)
class OptimiserSettings:
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
        check_range(0, open_low=True, rate=self.rate, clip=self.clip)
        check_range(0, weight_decay=self.weight_decay, warmup_epochs=self.warmup_epochs)
        check_range(0, warmup_rate=self.warmup_rate, smallest_rate=self.smallest_rate)
        if self.smallest_rate > self.rate:
            raise SettingError(
                f"smallest_rate must be ≤ rate, which the cosine falls from, got {self.smallest_rate:g} > "
                f"{self.rate:g}: set smallest_rate, too."
            )


@dataclass(frozen=True)
class AugmentationSettings:
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
            raise SettingError(f"auto_augment is for kind timm; {self.kind} has distort.")
        check_range(0, padding=self.padding, mixup=self.mixup, cutmix=self.cutmix)
        check_range(0, 1, distort=self.distort, erase=self.erase)
        check_range(0, 1, mix_share=self.mix_share, smoothing=self.smoothing)

    @property
    def mixes(self) -> bool:
        """Whether images are blended in pairs."""
        return bool(self.mixup or self.cutmix)


@dataclass(frozen=True)
class MaskAugmentationSettings:
    """What training pictures and their masks go through on the device.

    A picture is enlarged or made smaller by a factor between `smallest` and `largest`, which may show a part of it, or
    all of it with pixels around it that have no class; half of them are mirrored. `colour` is how far brightness,
    contrast and saturation may go up or down, as a share.
    """

    smallest: float = 0.75
    largest: float = 2.0
    flip: bool = True
    colour: float = 0.4

    def __post_init__(self) -> None:
        check_range(0, open_low=True, smallest=self.smallest)
        check_range(self.smallest, largest=self.largest)
        check_range(0, 1, colour=self.colour)


@dataclass(frozen=True)
class MonitorSettings:
    """What the monitor does: it measures every `every` epochs, on fixed batches of training and of test inputs.

    `scores` inputs of each are also compared with their references. `train_mode` measures the training batch with drop
    path active, as the study does; `legacy` adds Teo & Nguyen's logged quantity.
    """

    every: int = 1
    scores: int = 2
    train_mode: bool = False
    legacy: bool = False

    def __post_init__(self) -> None:
        check_range(1, every=self.every)
        check_range(0, scores=self.scores)


@dataclass(frozen=True)
class ImageMonitorSettings(MonitorSettings):
    """`images` is how many images of each half are monitored, if a batch has as many; 0 turns the monitor off."""

    images: int = 128

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(0, images=self.images)


@dataclass(frozen=True)
class TextMonitorSettings(MonitorSettings):
    """`contexts` is how many contexts of each half are monitored, if a batch has as many; 0 turns the monitor off."""

    contexts: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(0, contexts=self.contexts)


@dataclass(frozen=True)
class SentenceMonitorSettings(MonitorSettings):
    """`sentences` is how many sentences of each half are monitored, if a batch has as many; 0 turns the monitor off."""

    sentences: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(0, sentences=self.sentences)


@dataclass(frozen=True)
class Recipe:
    """A training of any kind. `name` and `about` say what it is for; `data` names a folder of `ATTNAUDIT_DATA`.

    `average` is the decay of the exponential moving average of the weights, None for none; `ksvd_weight` is η of
    Primal-Attention's regulariser η·J²; `pca_weight` is that of a pull of keys towards principal
    components (`PCAPenalty`), and below 0 that of a push away from them, the control of such a pull.
    """

    #: What a batch consists of.
    examples: ClassVar[str]

    name: str
    about: str = ""
    data: str = ""
    model: Architecture | DecoderArchitecture | EncoderArchitecture = field(default_factory=Architecture)
    epochs: int = 100
    batch: int = 512
    precision: Literal["bf16", "fp32"] = "bf16"
    optimiser: OptimiserSettings = field(default_factory=OptimiserSettings)
    average: float | None = None
    ksvd_weight: float = 0.0
    monitor: MonitorSettings = field(default_factory=MonitorSettings)
    pca_weight: float = added_later(0.0, unwritten=True)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\w[\w.-]*", self.name):
            raise SettingError(f"name must be usable as a folder's (letters, digits, - and _), got {self.name!r}.")
        check_range(1, epochs=self.epochs, batch=self.batch)
        check_range(0, 1, average=self.average)
        if self.ksvd_weight and self.model.attention != "primal":
            raise SettingError(f"ksvd_weight is for primal attention, but the model has {self.model.attention}.")

    @property
    def monitored_inputs(self) -> int:
        """The number of inputs of each half that are monitored."""
        raise NotImplementedError


@dataclass(frozen=True)
class ImageRecipe(Recipe):
    """A vision transformer that learns to name images."""

    examples = "images"

    task: Literal["images"] = "images"
    data: str = "cifar10"
    model: Architecture = field(default_factory=Architecture)
    augmentation: AugmentationSettings = field(default_factory=AugmentationSettings)
    monitor: ImageMonitorSettings = field(default_factory=ImageMonitorSettings)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model.segments:
            raise SettingError("model.decoder is for task segmentation: leave it out, or name the task.")
        height, width = self.model.image_shape
        if height != width:
            raise SettingError(
                f"model.image_width is for task segmentation, since images with labels are cropped to squares, got "
                f"{width} and an image_size of {height}: leave it out."
            )
        if self.batch % 2 and self.augmentation.mixes:
            raise SettingError(f"batch must be even, because mixup pairs images, got {self.batch}.")

    @property
    def monitored_inputs(self) -> int:
        """Images."""
        return self.monitor.images

    def for_classes(self, classes: int) -> ImageRecipe:
        """The same with as many classes as the data has."""
        return replace(self, model=replace(self.model, classes=classes))


@dataclass(frozen=True)
class SegmentationRecipe(Recipe):
    """A vision transformer with a decoder that learns to name every pixel; `model.classes` is how many classes are."""

    examples = "images"

    task: Literal["segmentation"] = "segmentation"
    data: str = "camvid"
    model: Architecture = field(default_factory=lambda: Architecture(decoder="linear"))
    augmentation: MaskAugmentationSettings = field(default_factory=MaskAugmentationSettings)
    monitor: ImageMonitorSettings = field(default_factory=ImageMonitorSettings)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.model.segments:
            raise SettingError("model.decoder is missing: a network that segments needs one, such as linear.")

    @property
    def monitored_inputs(self) -> int:
        """Images."""
        return self.monitor.images


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
    monitor: TextMonitorSettings = field(default_factory=TextMonitorSettings)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(1, min_count=self.min_count)
        check_range(0, 1, swap_rate=self.swap_rate)

    @property
    def monitored_inputs(self) -> int:
        """Contexts."""
        return self.monitor.contexts

    def for_words(self, words: int) -> TextRecipe:
        """The same with as many words as the vocabulary has."""
        return replace(self, model=replace(self.model, vocabulary=words))


@dataclass(frozen=True)
class SentenceRecipe(Recipe):
    """A pretrained encoder that learns to name sentences: fine-tuning, with any attention."""

    examples = "sentences"

    task: Literal["sentences"] = "sentences"
    data: str = "sst2"
    model: EncoderArchitecture = field(default_factory=EncoderArchitecture)
    monitor: SentenceMonitorSettings = field(default_factory=SentenceMonitorSettings)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pca_weight:
            raise SettingError("pca_weight is for images and text: the padding of sentences would count as tokens.")

    @property
    def monitored_inputs(self) -> int:
        """Sentences."""
        return self.monitor.sentences


#: A recipe as it is in a file, where `task` says which kind it is.
AnyRecipe = Annotated[ImageRecipe | SegmentationRecipe | TextRecipe | SentenceRecipe, Discriminator("task")]
