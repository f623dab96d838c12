"""From what a person asks for, models and images by name, to the plan of an evaluation or of corrupted sets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from attnaudit import defaults
from attnaudit.errors import InputError, UsageError
from attnaudit.protocol import Protocol
from attnaudit.records.evaluation import Condition, ConditionKind
from attnaudit.robustness.conditions import (
    CLEAN,
    EVERYTHING,
    GRADIENT,
    OUTLIERS,
    attack_conditions,
    corruption_conditions,
    epsilon,
    noise_conditions,
    transfer_conditions,
)
from attnaudit.robustness.corrupted_folder import CLEAN_FILE, classes_of, folder_of_set, size_of
from attnaudit.robustness.corruptions import CORRUPTIONS
from attnaudit.robustness.examples import Examples
from attnaudit.robustness.noises import NOISES
from attnaudit.robustness.pixels import PixelModel
from attnaudit.sources.labelled import labelled_for, read_labelled
from attnaudit.sources.model import LoadedModel
from attnaudit.sources.segmented import segmented_for

#: Names of corruptions, or all of them.
Corruptions = Sequence[str] | Literal["all"]


def evaluation_conditions(
    protocol: Protocol,
    *,
    attacks: Sequence[str] = (),
    eps: Sequence[float | str] = (),
    corruptions: Corruptions = (),
    severities: Sequence[int] = (),
    transfer: bool = False,
    outliers: bool = False,
    checks: bool = True,
) -> tuple[Condition, ...]:
    """Everything that models are tried under, the clean images first.

    Args:
        protocol: of the attacks.
        attacks: names; `pgd:50` runs 50 iterations, `autoattack@1/255` at that ε alone.
        eps: budgets of the attacks, in pixels between 0 and 1: numbers, or texts such as `4/255`.
        corruptions: names, or all.
        severities: of the corruptions.
        transfer: whether adversarial images of another model are tried.
        outliers: whether images of no known class are shown.
        checks: whether to look for gradient masking, where gradients were used.
    """
    budgets = [epsilon(str(value)) for value in eps]
    attacking = attack_conditions(attacks, budgets, protocol)
    masking = checks and protocol is Protocol.EXACT and any(attack.name == "pgd" for attack in attacking)
    return (
        CLEAN,
        *corrupting_conditions(corruptions, severities),
        *attacking,
        *(transfer_conditions(budgets, protocol, attacking) if transfer else ()),
        *((EVERYTHING, GRADIENT) if masking else ()),
        *((OUTLIERS,) if outliers else ()),
    )


def corrupting_conditions(corruptions: Corruptions, severities: Sequence[int]) -> list[Condition]:
    """Every corruption that is named, at every severity."""
    return corruption_conditions(CORRUPTIONS if corruptions == "all" else corruptions, severities)


def noise_plan(noises: Sequence[str] | Literal["all"], rates: Sequence[float]) -> tuple[Condition, ...]:
    """Clean sentences, and every noise that is named at every rate."""
    return (CLEAN, *noise_conditions(list(NOISES) if noises == "all" else noises, rates))


def check_corrupted(corrupted: Path | None, corruptions: Corruptions) -> None:
    """Refuse a set of corrupted images that is not there, or that nobody would look at.

    Raises:
        InputError: there is no such folder.
        UsageError: no corruption is asked for.
    """
    if corrupted is not None and not corrupted.is_dir():
        raise InputError(f"--corrupted must be a folder, ImageNet-C or from attnaudit corrupt, got {corrupted}.")
    if corrupted is not None and not corruptions:
        raise UsageError(f"--corrupted {corrupted} needs corruptions: name some, or use --corruptions all.")


def for_segmentation(conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    """Those under which networks that segment are shown pictures."""
    shown = (ConditionKind.CLEAN, ConditionKind.CORRUPTION)
    return tuple(condition for condition in conditions if condition.kind in shown)


def check_segmentation(**asked: object) -> None:
    """Refuse what is asked for by name and makes no sense for networks that segment.

    Raises:
        UsageError: there is such an option.
    """
    if wrong := [name for name, value in asked.items() if value]:
        raise UsageError(
            f"--{wrong[0]} is for classifiers: a network that segments is shown clean and corrupted pictures only."
        )


def find_examples(
    model: LoadedModel,
    images: Path | None,
    *,
    corrupted: Path | None = None,
    outliers: Path | None = None,
    limit: int | None = None,
    seed: int = defaults.SEED,
) -> Examples:
    """The images for a model, by default those of the data folder; `limit` of them, drawn by seed.

    A folder from `corrupt` also has the clean images, which are not preprocessed once more, however they are named.
    """
    if images is None and corrupted is not None and (corrupted / CLEAN_FILE).exists():
        images = corrupted / CLEAN_FILE
    written_by_us = None if images is None else _folder_of_ours(images, corrupted)
    sets = [folder for folder in (written_by_us, corrupted) if folder is not None]
    subject = PixelModel(model)
    return Examples.drawn(
        (segmented_for if subject.segments else labelled_for)(images, subject.outputs),
        limit,
        seed,
        corrupted_folder=corrupted,
        preprocessed=written_by_us is not None,
        outliers=None if outliers is None else read_labelled(outliers),
        classes=None if written_by_us is None else classes_of(written_by_us),
        crop_size=next(filter(None, map(size_of, sets)), None),
    )


def _folder_of_ours(images: Path, corrupted: Path | None) -> Path | None:
    """The folder from `corrupt` that images are from; its clean images are known even without the file beside them."""
    clean = None if corrupted is None else corrupted / CLEAN_FILE
    if clean is not None and clean.exists() and images.exists() and images.samefile(clean):
        return corrupted
    return folder_of_set(images)
