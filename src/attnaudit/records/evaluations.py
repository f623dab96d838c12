"""How well networks held in evaluations by `attnaudit robust`: accuracies, and what is known of the networks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from attnaudit.errors import RunFolderError
from attnaudit.numerics.digest import digest


class Kind(StrEnum):
    """What is done to images."""

    CLEAN = "clean"
    CORRUPTION = "corruption"
    ATTACK = "attack"
    OUTLIERS = "outliers"  # images of no class: nothing to be right about, but something to be sure of
    CHECK = "check"  # for the checks of gradient masking


@dataclass(frozen=True)
class Held:
    """The share of images that a network gets right under one condition.

    `source` names the images that were shown, or made into others, and who made them.
    """

    kind: Kind
    name: str
    strength: float
    norm: str | None
    steps: int | None
    source: str
    accuracy: float

    @property
    def condition(self) -> tuple[Any, ...]:
        """Everything but the outcome."""
        return self.kind, self.name, self.strength, self.norm, self.steps, self.source


@dataclass(frozen=True)
class EvaluatedNetwork:
    """A network of `attnaudit train` and how well it held.

    `masked` names the checks of its gradients that fail, and `checked` says whether any was made.
    """

    label: str
    fingerprint: str
    architecture: Mapping[str, Any]
    facts: Mapping[str, Any]
    held: tuple[Held, ...]
    masked: tuple[str, ...]
    checked: bool

    @property
    def identity(self) -> str:
        """Its weights and what they are weights of: attentions that differ in what never happens may train alike."""
        return digest(self.fingerprint, dict(self.architecture))

    def under(self, kind: Kind) -> list[Held]:
        """The conditions of one kind."""
        return [held for held in self.held if held.kind is kind]

    def joined(self, other: EvaluatedNetwork) -> EvaluatedNetwork:
        """With what else was found of it.

        Raises:
            RunFolderError: the two do not agree.
        """
        held = {own.condition: own for own in self.held}
        for own in other.held:
            if (before := held.setdefault(own.condition, own)) != own:
                raise RunFolderError(
                    f"{self.label} keeps {before.accuracy:.1%} in one folder and {own.accuracy:.1%} in another under "
                    f"{own.name} {own.strength:.3g}: judge one of the folders."
                )
        return replace(self, held=tuple(held.values()))

    def doubted(self, other: EvaluatedNetwork) -> EvaluatedNetwork:
        """With the checks of another evaluation of the same network."""
        masked = tuple(dict.fromkeys((*self.masked, *other.masked)))
        return replace(self, masked=masked, checked=self.checked or other.checked)


@dataclass(frozen=True)
class Evaluation:
    """An evaluation of networks; those with one `identity` are of the same images in the same way."""

    identity: str
    images: int
    networks: tuple[EvaluatedNetwork, ...]

    def joined(self, other: Evaluation) -> Evaluation:
        """With the networks and conditions of another one of the same identity."""
        found: dict[str, EvaluatedNetwork] = {}
        for network in (*self.networks, *other.networks):
            key = network.identity
            found[key] = found[key].joined(network) if key in found else network
        return replace(self, networks=tuple(found.values()))
