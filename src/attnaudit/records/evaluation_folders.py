"""The folders of `attnaudit robust`, opened again: what is asked for is there and of its kind, or named."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from attnaudit.errors import RunFolderError
from attnaudit.records.attention_fields import check_attention
from attnaudit.records.evaluations import EvaluatedNetwork, Evaluation, Held, Kind
from attnaudit.records.fields import Fields
from attnaudit.records.identity import SETTINGS
from attnaudit.records.run_folder import RunFolder

#: The `kind` in the identity of such a folder.
ROBUSTNESS = "robustness"


def holds_evaluation(path: Path) -> bool:
    """Whether a run folder is one of `attnaudit robust`."""
    identity = RunFolder(path).settings()["identity"] if path.is_dir() else None
    return isinstance(identity, dict) and identity.get("kind") == ROBUSTNESS


def open_evaluations(paths: Sequence[Path]) -> list[Evaluation]:
    """Evaluations in folders; what was evaluated on the same images with the same settings is one, in however many.

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
    settings = Fields(folder.settings(), folder.settings_file, SETTINGS)
    try:
        summary = Fields.in_file(folder.summary_file, "the summary of an evaluation")
    except FileNotFoundError as error:
        raise RunFolderError(
            f"{path} holds an evaluation that is not finished: repeat its command to go on."
        ) from error
    accuracies, checks = (_by_model(summary.mappings(name)) for name in ("accuracies", "checks"))
    networks = []
    for model in settings.mappings("models"):
        if model.has("card"):
            label = model.text("label")
            network = _network(model, accuracies[label], checks[label])
            if not network.under(Kind.CLEAN):
                raise summary.fault(f"it has no accuracy of {label} on clean images")
            networks.append(network)
    images = settings.whole("images", least=1)
    identity = json.dumps([settings.content["identity"], images], sort_keys=True)
    return Evaluation(identity, images, tuple(networks))


def _by_model(entries: Sequence[Fields]) -> Mapping[str, list[Fields]]:
    found: dict[str, list[Fields]] = defaultdict(list)
    for entry in entries:
        found[entry.text("model")].append(entry)
    return found


def _network(model: Fields, accuracies: Sequence[Fields], checks: Sequence[Fields]) -> EvaluatedNetwork:
    made = [check for check in checks if not check.is_null("passed")]
    card = model.mapping("card")
    return EvaluatedNetwork(
        model.text("label"),
        model.text("fingerprint"),
        _architecture(card.mapping("architecture")),
        _facts(card.mapping("facts")),
        tuple(_held(entry) for entry in accuracies),
        masked=tuple(check.text("name") for check in made if not check.truth("passed")),
        checked=bool(made),
    )


def _held(entry: Fields) -> Held:
    own = entry.mapping("condition")
    kind = own.text("kind")
    if kind not in list(Kind):
        raise own.fault(f"{kind} is no kind of condition")
    return Held(
        Kind(kind),
        own.text("name"),
        own.number("strength"),
        None if own.is_null("norm") else own.text("norm"),
        None if own.is_null("steps") else own.whole("steps", least=1),
        entry.text("source"),
        entry.number("accuracy"),
    )


def _architecture(architecture: Fields) -> Mapping[str, Any]:
    """As it is, if it says what networks are compared by."""
    check_attention(architecture)
    architecture.whole("depth", least=1)
    return architecture.content


def _facts(facts: Fields) -> Mapping[str, Any]:
    """As they are: whatever is known of a network; what claims read of it is of its kind."""
    if "seed" in facts:
        facts.whole("seed", least=0)
        facts.text("recipe")
    if "test_accuracy" in facts:
        facts.number("test_accuracy")
    if facts.has("attention"):
        layers = facts.mapping("attention")
        for name in layers.content:
            if "nonzero" in (layer := layers.mapping(name)):
                layer.number("nonzero")
    return facts.content
