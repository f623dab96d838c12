"""An evaluation of robustness as its folder has it: conditions, accuracies, scores, checks, and whose they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from attnaudit.protocol import Protocol
from attnaudit.records.card import NetworkCard
from attnaudit.records.later_fields import added_later
from attnaudit.records.ranges import check_range
from attnaudit.records.run_kind import RunKind


class ConditionKind(StrEnum):
    """What is done to images, or to sentences."""

    CLEAN = "clean"
    CORRUPTION = "corruption"
    ATTACK = "attack"
    NOISE = "noise"  # in the words of a sentence
    OUTLIERS = "outliers"  # images of no class: nothing to be right about, but something to be sure of
    CHECK = "check"  # for the checks of gradient masking


@dataclass(frozen=True)
class Condition:
    """One of them, at one strength: the severity of a corruption, the ε of an attack, the share of words with noise."""

    kind: ConditionKind
    name: str
    strength: float = 0.0
    norm: str | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        check_range(1, steps=self.steps)

    @property
    def words(self) -> str:
        """For a line of a table."""
        if self.kind is ConditionKind.CORRUPTION:
            return f"{self.name}, severity {self.strength:.0f}"
        if self.kind is ConditionKind.NOISE:
            return f"{self.name}, {100 * self.strength:.6g} % of the words"
        return f"{self.name}, ε = {epsilon_text(self.strength)}" if self.kind is ConditionKind.ATTACK else self.name


def epsilon_text(epsilon: float) -> str:
    """ε as people write it: 4/255, or a decimal."""
    levels = epsilon * 255
    finest = 1 if levels >= 2 else 4
    whole = abs(levels * finest - round(levels * finest)) < 1e-6
    return f"{levels:.4g}/255" if whole and 0 < levels <= 32 else f"{epsilon:.4g}"


class Quantity(StrEnum):
    """What the accuracy of a model is: of a classifier the share of images, otherwise how well masks are predicted."""

    ACCURACY = "accuracy"
    MEAN_IOU = "mean_iou"
    MEAN_ACCURACY = "mean_accuracy"
    PIXEL_ACCURACY = "pixel_accuracy"

    @property
    def words(self) -> str:
        """For the head of a table."""
        return "mIoU" if self is Quantity.MEAN_IOU else self.value.replace("_", " ")

    @property
    def decides(self) -> bool:
        """Whether networks are compared by it."""
        return self in (Quantity.ACCURACY, Quantity.MEAN_IOU)


@dataclass(frozen=True)
class Accuracy:
    """How many images, or sentences, a model gets right under a condition, with Wilson's interval.

    `source` names the images that were shown, or made into others, and who made them. `perturbation` is the largest
    change of a pixel by an attack. Of a segmentation there are several, which `quantity` tells apart, with bootstrap
    intervals over pictures, None for a single one; no picture is right or wrong as a whole, and `missing` classes have
    no pixel.
    """

    model: str
    condition: Condition
    source: str
    images: int
    right: int | None
    accuracy: float
    interval: tuple[float, float] | None
    perturbation: float | None
    seconds: float
    quantity: Quantity = added_later(Quantity.ACCURACY, unwritten=True)
    missing: int = added_later(0, unwritten=True)


@dataclass(frozen=True)
class EvaluationScore:
    """A number of a model other than an accuracy, with a bootstrap interval over images; None for a single one."""

    model: str
    name: str
    value: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class MaskingCheck:
    """One check of one model for gradient masking; `passed` is None where the run lacks what it needs."""

    model: str
    name: str
    finding: str
    passed: bool | None

    @property
    def word(self) -> str:
        """`pass`, `FAIL`, or `not run`."""
        return "not run" if self.passed is None else "pass" if self.passed else "FAIL"


@dataclass(frozen=True)
class EvaluationSummary:
    """The `summary.json` of an evaluation; `examples` is what the models were shown: images or sentences."""

    accuracies: tuple[Accuracy, ...]
    scores: tuple[EvaluationScore, ...]
    checks: tuple[MaskingCheck, ...]
    examples: str = added_later("images", unwritten=True)

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """What was measured, the one that decides first."""
        return tuple(dict.fromkeys(entry.quantity for entry in self.accuracies)) or (Quantity.ACCURACY,)

    @property
    def segments(self) -> bool:
        """Whether it is one of networks that segment."""
        return self.quantities[0] is not Quantity.ACCURACY

    def only(self, quantity: Quantity) -> EvaluationSummary:
        """The same with one of them."""
        return replace(self, accuracies=tuple(entry for entry in self.accuracies if entry.quantity is quantity))

    def of(self, model: str, kind: ConditionKind) -> list[Accuracy]:
        """What decides of a model under conditions of one kind."""
        entries = self.only(self.quantities[0]).accuracies
        return [entry for entry in entries if entry.model == model and entry.condition.kind is kind]


@dataclass(frozen=True)
class EvaluationConventions:
    """What results depend on beside models, images and conditions.

    `masked` lets only the classes of the data count, as ImageNet-A, -R and -O are evaluated.
    """

    seed: int
    protocol: Protocol
    precision: str
    masked: bool
    batch: int


@dataclass(frozen=True)
class EvaluationIdentity:
    """What an evaluation's folder belongs to: more models and conditions may be added to it."""

    settings: EvaluationConventions
    data: str
    kind: Literal[RunKind.ROBUSTNESS] = RunKind.ROBUSTNESS


@dataclass(frozen=True)
class EvaluatedModel:
    """A model that was evaluated; `card` is None for one that was not trained by us."""

    label: str
    fingerprint: str
    weights: str
    card: NetworkCard | None


@dataclass(frozen=True)
class EvaluationFile:
    """The `run.json` of an evaluation."""

    format: int
    identity: EvaluationIdentity
    attnaudit: str
    versions: Mapping[str, str]
    models: tuple[EvaluatedModel, ...]
    twin: str | None
    data: str
    images: int
    conditions: tuple[Condition, ...]
    parts: tuple[str, ...]

    def __post_init__(self) -> None:
        check_range(1, images=self.images)
