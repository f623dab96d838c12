"""How well networks held, from the folder of `attnaudit robust`: accuracies, and what is known of the networks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from attnaudit.errors import RunFolderError
from attnaudit.evidence.folder import RunFolder
from attnaudit.evidence.identity import digest

#: The `kind` in the identity of such a folder.
ROBUSTNESS = "robustness"


class Kind(StrEnum):
    """What is done to pictures."""

    CLEAN = "clean"
    CORRUPTION = "corruption"
    ATTACK = "attack"
    OUTLIERS = "outliers"  # pictures of no class: nothing to be right about, but something to be sure of
    CHECK = "check"  # for the checks of gradient masking


@dataclass(frozen=True)
class Held:
    """The share of pictures that a network gets right under one condition.

    `source` names the pictures that were shown, or made into others, and who made them.
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
    """An evaluation of networks; those with one `identity` are of the same pictures in the same way."""

    identity: str
    pictures: int
    networks: tuple[EvaluatedNetwork, ...]

    def joined(self, other: Evaluation) -> Evaluation:
        """With the networks and conditions of another one of the same identity."""
        found: dict[str, EvaluatedNetwork] = {}
        for network in (*self.networks, *other.networks):
            key = network.identity
            found[key] = found[key].joined(network) if key in found else network
        return replace(self, networks=tuple(found.values()))


def holds_evaluation(path: Path) -> bool:
    """Whether a run folder is one of `attnaudit robust`."""
    identity = RunFolder(path).settings()["identity"] if path.is_dir() else None
    return isinstance(identity, dict) and identity.get("kind") == ROBUSTNESS


def open_evaluations(paths: Sequence[Path]) -> list[Evaluation]:
    """Evaluations in folders; what was evaluated on the same pictures with the same settings is one, in however many.

    A check of a network's gradients that fails in one of them fails in all.

    Raises:
        RunFolderError: a folder holds no finished evaluation, or two do not agree.
    """
    found: dict[str, Evaluation] = {}
    checks: dict[str, EvaluatedNetwork] = {}
    for own in map(open_evaluation, paths):
        found[own.identity] = found[own.identity].joined(own) if own.identity in found else own
        for network in own.networks:
            checks[network.identity] = network.doubted(checks.get(network.identity, network))
    return [
        replace(own, networks=tuple(network.doubted(checks[network.identity]) for network in own.networks))
        for own in found.values()
    ]


def open_evaluation(path: Path) -> Evaluation:
    """Open the folder of a finished evaluation; of its models, those that we trained.

    Raises:
        RunFolderError: it is no such folder, or the evaluation is not finished.
    """
    if not holds_evaluation(path):
        raise RunFolderError(f"{path} holds no evaluation: give a folder that attnaudit robust wrote.")
    folder = RunFolder(path)
    try:
        summary = json.loads(folder.summary_file.read_text())
        settings = folder.settings()
        models = [model for model in settings["models"] if model.get("card")]
        identity = json.dumps([settings["identity"], settings["pictures"]], sort_keys=True)
        return Evaluation(identity, int(settings["pictures"]), tuple(_network(model, summary) for model in models))
    except FileNotFoundError as error:
        raise RunFolderError(
            f"{path} holds an evaluation that is not finished: repeat its command to go on."
        ) from error
    except (json.JSONDecodeError, KeyError, TypeError, ValueError, OSError) as error:
        raise RunFolderError(f"{folder.summary_file} is not readable as the summary of an evaluation.") from error


def _network(model: Mapping[str, Any], summary: Mapping[str, Any]) -> EvaluatedNetwork:
    label = model["label"]
    held = tuple(_held(entry) for entry in summary["accuracies"] if entry["model"] == label)
    checks = [check for check in summary["checks"] if check["model"] == label]
    failed = tuple(check["name"] for check in checks if check["passed"] is False)
    checked = any(check["passed"] is not None for check in checks)
    card = model["card"]
    return EvaluatedNetwork(label, model["fingerprint"], card["architecture"], card["facts"], held, failed, checked)


def _held(entry: Mapping[str, Any]) -> Held:
    own = entry["condition"]
    condition = Kind(own["kind"]), own["name"], float(own["strength"]), own["norm"], own["steps"]
    return Held(*condition, str(entry["source"]), float(entry["accuracy"]))
