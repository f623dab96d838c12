"""What a training depends on, as a short YAML file: model, data, optimiser, augmentation, what is monitored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from attnaudit.errors import UsageError
from attnaudit.extras import optional
from attnaudit.sources.architecture import Architecture
from attnaudit.training.settings import settings_from

FOLDER = Path(__file__).parent / "recipes"
_BASE = "base"


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


@dataclass(frozen=True)
class Augmentation:
    """What training pictures go through.

    `timm` is timm's transform for training (random crop, flip, colour, `auto_augment`), in worker processes;
    `crop-flip` pads by `padding`, crops and flips on the device, for pictures that all fit into memory; `none` neither.
    Erasing, mixup, cutmix (in a `mix_share` of batches) and label smoothing are timm's and go with each of them.
    """

    kind: Literal["timm", "crop-flip", "none"] = "crop-flip"
    padding: int = 4
    auto_augment: str | None = None
    colour_jitter: float = 0.3
    erase: float = 0.0
    mixup: float = 0.0
    cutmix: float = 0.0
    mix_share: float = 1.0
    smoothing: float = 0.1


@dataclass(frozen=True)
class Watch:
    """What the monitor looks at: a fixed batch of training and of test pictures, every `every` epochs.

    `scores` pictures of each are also held against their controls. `train_mode` measures the training batch with drop
    path active, as the study does; `legacy` adds Teo & Nguyen's logged quantity.
    """

    images: int = 128
    every: int = 1
    scores: int = 2
    train_mode: bool = False
    legacy: bool = False


@dataclass(frozen=True)
class Recipe:
    """A training. `name` and `about` say what it is for; `data` names a folder of `ATTNAUDIT_DATA`.

    `average` is the decay of the exponential moving average of the weights, None for none; `ksvd_weight` is η of
    Primal-Attention's regulariser η·J².
    """

    name: str
    about: str = ""
    data: str = "cifar10"
    model: Architecture = field(default_factory=Architecture)
    epochs: int = 100
    batch: int = 512
    precision: Literal["bf16", "fp32"] = "bf16"
    optimiser: Optimiser = field(default_factory=Optimiser)
    augmentation: Augmentation = field(default_factory=Augmentation)
    average: float | None = None
    ksvd_weight: float = 0.0
    monitor: Watch = field(default_factory=Watch)

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1:
            raise UsageError(
                f"Recipe {self.name} needs an epoch and a picture at least, not {self.epochs}, {self.batch}."
            )
        if self.batch % 2 and (self.augmentation.mixup or self.augmentation.cutmix):
            raise UsageError(f"Mixup pairs pictures, so recipe {self.name} needs an even batch, not {self.batch}.")
        if self.ksvd_weight and self.model.attention != "primal":
            raise UsageError(f"Recipe {self.name} has a ksvd_weight, but its attention is {self.model.attention}.")

    @property
    def identity(self) -> dict[str, Any]:
        """As plain data that JSON gives back unchanged."""
        content = asdict(self)
        layers = self.model.attention_layers
        content["model"]["attention_layers"] = None if layers is None else list(layers)
        return content

    def for_classes(self, classes: int) -> Recipe:
        """The same with as many classes as the data has."""
        return replace(self, model=replace(self.model, classes=classes))


def recipe_names() -> list[str]:
    """The recipes that come with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def read_recipe(name: str, changes: Sequence[str] = ()) -> Recipe:
    """A recipe of the package by name, or a YAML file, with changes such as `model.depth=6`."""
    content = _content(_file(name))
    for change in changes:
        _apply(content, change)
    return settings_from(Recipe, content, f"recipe {content['name']}")


def _file(name: str) -> Path:
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        path = FOLDER / f"{name}.yaml"
        if not path.is_file():
            raise UsageError(f"There is no recipe {name!r}; there are {', '.join(recipe_names())}, or a .yaml file.")
    if not path.is_file():
        raise UsageError(f"There is no recipe file {path}.")
    return path


def _content(path: Path) -> dict[str, Any]:
    """A recipe file over the recipe it is based on, if any; named after its file unless it says otherwise."""
    yaml = optional("yaml", "train", "Reading a recipe")
    try:
        own = yaml.safe_load(path.read_text())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read as YAML ({str(error).splitlines()[0]}).") from error
    if not isinstance(own, dict):
        raise UsageError(f"{path} holds no settings.")
    base = own.pop(_BASE, None)
    own = {"name": path.stem, **own}
    if base is None:
        return own
    beside = path.parent / f"{base}.yaml"
    return _merged(_content(beside if beside.is_file() else _file(str(base))), own)


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    both = dict(under)
    for name, value in over.items():
        below = both.get(name)
        both[name] = _merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return both


def _apply(content: dict[str, Any], change: str) -> None:
    name, sign, text = change.partition("=")
    if not sign:
        raise UsageError(f"--set {change}: say which setting gets which value, e.g. --set model.depth=6.")
    *sections, last = name.strip().split(".")
    for section in sections:
        content = content.setdefault(section, {})
        if not isinstance(content, dict):
            raise UsageError(f"--set {change}: {section} has no settings under it.")
    content[last] = optional("yaml", "train", "Reading a recipe").safe_load(text)
