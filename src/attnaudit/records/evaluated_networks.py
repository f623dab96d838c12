"""Networks of `attnaudit train` as `attnaudit robust` evaluated them, in one folder or in several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from attnaudit.errors import RunFolderError
from attnaudit.numerics.digest import digest
from attnaudit.records import json_file
from attnaudit.records.architecture import ClassifierArchitecture
from attnaudit.records.card import NetworkCard, TrainingFacts
from attnaudit.records.evaluation import (
    Accuracy,
    ConditionKind,
    EvaluatedModel,
    EvaluationFile,
    EvaluationIdentity,
    EvaluationSummary,
)
from attnaudit.records.run_folder import RunFolder
from attnaudit.records.run_kind import RunKind


@dataclass(frozen=True)
class EvaluatedNetwork:
    """A network and its accuracies.

    `masked` names the checks of its gradients that fail, and `checked` says whether any was made.
    """

    label: str
    fingerprint: str
    architecture: ClassifierArchitecture
    facts: TrainingFacts
    accuracies: tuple[Accuracy, ...]
    masked: tuple[str, ...]
    checked: bool

    @property
    def identity(self) -> str:
        """Its weights and what they are weights of: attentions that differ in what never happens may train alike."""
        return digest(self.fingerprint, json_file.plain(self.architecture))

    def under(self, kind: ConditionKind) -> list[Accuracy]:
        """The accuracies under conditions of one kind: mIoU of what segments."""
        return [entry for entry in self.accuracies if entry.condition.kind is kind and entry.quantity.decides]

    def joined(self, other: EvaluatedNetwork) -> EvaluatedNetwork:
        """With what else was found of it.

        Raises:
            RunFolderError: the two do not agree.
        """
        found = {(entry.condition, entry.source, entry.quantity): entry for entry in self.accuracies}
        for entry in other.accuracies:
            before = found.setdefault((entry.condition, entry.source, entry.quantity), entry)
            if before.accuracy != entry.accuracy:
                raise RunFolderError(
                    f"{self.label} keeps {before.accuracy:.1%} in one folder and {entry.accuracy:.1%} in another under "
                    f"{entry.condition.words}: judge one of the folders."
                )
        return replace(self, accuracies=tuple(found.values()))

    def with_checks_of(self, other: EvaluatedNetwork) -> EvaluatedNetwork:
        """With the checks of another evaluation of the same network."""
        masked = tuple(dict.fromkeys((*self.masked, *other.masked)))
        return replace(self, masked=masked, checked=self.checked or other.checked)


@dataclass(frozen=True)
class Evaluation:
    """An evaluation of networks; those with one `identity` and number of images are of the same images, alike."""

    identity: EvaluationIdentity
    images: int
    networks: tuple[EvaluatedNetwork, ...]

    def joined(self, other: Evaluation) -> Evaluation:
        """With the networks and conditions of another one of the same identity."""
        found: dict[str, EvaluatedNetwork] = {}
        for network in (*self.networks, *other.networks):
            key = network.identity
            found[key] = found[key].joined(network) if key in found else network
        return replace(self, networks=tuple(found.values()))


def open_evaluations(paths: Sequence[Path]) -> list[Evaluation]:
    """Evaluations in folders; what was evaluated on the same images with the same settings is one, in however many.

    A check of a network's gradients that fails in one of them fails in all.

    Raises:
        RunFolderError: a folder holds no finished evaluation, or two do not agree.
    """
    found: dict[tuple[EvaluationIdentity, int], Evaluation] = {}
    checks: dict[str, EvaluatedNetwork] = {}
    for own in map(open_evaluation, paths):
        key = own.identity, own.images
        found[key] = found[key].joined(own) if key in found else own
        for network in own.networks:
            checks[network.identity] = network.with_checks_of(checks.get(network.identity, network))
    return [
        replace(own, networks=tuple(network.with_checks_of(checks[network.identity]) for network in own.networks))
        for own in found.values()
    ]


def open_evaluation(path: Path) -> Evaluation:
    """Open the folder of a finished evaluation; of its models, those that we trained.

    Raises:
        RunFolderError: it is not such a folder, or the evaluation is not finished.
    """
    folder = RunFolder(path)
    settings = folder.settings(EvaluationFile, RunKind.ROBUSTNESS)
    summary = folder.summary(EvaluationSummary, "the summary of an evaluation")
    # Older versions left the summary of an earlier plan in place. Packed evaluations have no parts at all.
    if not folder.parts.is_empty and not folder.parts.files().keys() >= {*settings.parts}:
        raise folder.unfinished()
    networks = []
    for model in settings.models:
        if model.card is not None:
            network = _network(model, model.card, summary)
            if any(entry.images != settings.images for entry in network.under(ConditionKind.CLEAN)):
                raise RunFolderError(
                    f"{folder.summary_file} is of other inputs than {folder.settings_file.name}: restore the file "
                    "as it was, or repeat the command."
                )
            if not network.under(ConditionKind.CLEAN):
                raise RunFolderError(
                    f"{folder.summary_file} is not readable as the summary of an evaluation (it has no accuracy of "
                    f"{model.label} on clean images): restore the file as it was."
                )
            networks.append(network)
    return Evaluation(settings.identity, settings.images, tuple(networks))


def _network(model: EvaluatedModel, card: NetworkCard, summary: EvaluationSummary) -> EvaluatedNetwork:
    checks = [check for check in summary.checks if check.model == model.label and check.passed is not None]
    return EvaluatedNetwork(
        model.label,
        model.fingerprint,
        card.architecture,
        card.facts,
        tuple(entry for entry in summary.accuracies if entry.model == model.label),
        masked=tuple(check.name for check in checks if not check.passed),
        checked=bool(checks),
    )
