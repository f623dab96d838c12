"""Evaluated networks that differ in their attention alone, side by side, by seed."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import fmean
from typing import Any

from attnaudit.attention.functional import Pursuit
from attnaudit.errors import RunFolderError, UsageError
from attnaudit.records import json_file
from attnaudit.records.architecture import Architecture
from attnaudit.records.evaluated_networks import EvaluatedNetwork, Evaluation

_ATTENTION = ("attention", "attention_layers", "attention_options", "other_attention")
_SYMMETRIC = "symmetric"
_RULE = (*(field.name for field in fields(Pursuit)), "preset")


@dataclass(frozen=True)
class Choice:
    """The attention of a network, spelt out so that what is equal compares equal.

    `tempered` is attention with a temperature, whichever: every seed may have its own. `options` are all that is left.
    """

    name: str
    layers: tuple[int, ...]
    other: str
    rule: Pursuit | None = None
    tempered: bool = False
    options: str = "{}"

    @staticmethod
    def of(architecture: Architecture) -> Choice:
        """As a card has it."""
        name, layers = architecture.attention, architecture.attention_layers
        depth, options = architecture.depth, dict(architecture.attention_options)
        rule = _rule(options) if name == "rpc" else None
        tempered = options.pop("temperature", 1) != 1
        everywhere = tuple(range(depth))
        chosen = everywhere if layers is None else tuple(sorted(layer % depth for layer in layers))
        other = name if chosen == everywhere else architecture.other_attention
        if other == name and rule is None and not tempered:
            chosen = everywhere
        return Choice(name, chosen, other, rule, tempered, json.dumps(options, sort_keys=True))

    @property
    def is_plain_symmetric(self) -> bool:
        """Whether it is the baseline of RPC-Attention."""
        return self.name == self.other == _SYMMETRIC and not self.tempered

    @property
    def pursues(self) -> bool:
        """Whether it is RPC-Attention with steps to speak of, in a symmetric network."""
        in_symmetric = self.other in (_SYMMETRIC, self.name)
        return self.rule is not None and self.rule.iterations > 1 and self.rule.sparse == "outliers" and in_symmetric


@dataclass(frozen=True)
class Group:
    """Networks of one attention, by seed, in each evaluation; called by the recipe that they were trained by."""

    name: str
    choice: Choice
    runs: tuple[Mapping[int, EvaluatedNetwork], ...]

    @property
    def sparse_share(self) -> float | None:
        """The share of S that is not 0, over its layers and networks; None if a card does not say."""
        shares = []
        for network in (network for own in self.runs for network in own.values()):
            layers = network.facts.get("attention") or {}
            own_shares = [layer["nonzero"] for layer in layers.values() if "nonzero" in layer]
            if not own_shares:
                return None
            shares += own_shares
        return fmean(shares) if shares else None


def settings(evaluations: Sequence[Evaluation]) -> list[list[Group]]:
    """Groups of networks that are alike but for their attention: of equal size, trained alike on the same data.

    Trained alike is what has the same `setting` on its card, or, where a card says none, as many epochs.
    """
    found: dict[str, dict[Choice, list[dict[int, EvaluatedNetwork]]]] = defaultdict(dict)
    for place, evaluation in enumerate(evaluations):
        for network in evaluation.networks:
            if "seed" in network.facts:
                runs = found[_setting(network)].setdefault(_choice(network), [{} for _ in evaluations])
                first = runs[place].setdefault(network.facts["seed"], network)
                if first is not network:
                    own = f"{network.label} with other weights" if network.label == first.label else network.label
                    raise UsageError(f"{first.label} and {own} have the same attention and seed: judge one of them.")
    return [[_group(choice, runs) for choice, runs in groups.items()] for groups in found.values()]


def _rule(options: dict[str, Any]) -> Pursuit:
    """The rule of a pursuit, taken out of the options of an attention; None is what the preset has."""
    own = {name: options.pop(name) for name in _RULE if name in options}
    given = {name: value for name, value in own.items() if value is not None}
    preset = str(given.pop("preset", "code"))
    typed = json_file.parse(Pursuit, given, "attention_options")
    return Pursuit.preset(preset, **{name: getattr(typed, name) for name in given})


def _choice(network: EvaluatedNetwork) -> Choice:
    try:
        return Choice.of(network.architecture)
    except UsageError as error:
        raise RunFolderError(
            f"The card of {network.label} in run.json describes no attention there is: {error}"
        ) from error


def named_groups(evaluations: Sequence[Evaluation]) -> list[tuple[str, Group]]:
    """Attentions of networks that were trained alike, most first; names that occur twice are numbered."""
    alike = sorted(settings(evaluations), key=len, reverse=True)
    groups = [group for own in alike for group in own]
    names = [group.name for group in groups]
    return [
        (name if names.count(name) == 1 else f"{name} ({names[: place + 1].count(name)})", group)
        for place, (name, group) in enumerate(zip(names, groups, strict=True))
    ]


def _setting(network: EvaluatedNetwork) -> str:
    same = {name: value for name, value in json_file.plain(network.architecture).items() if name not in _ATTENTION}
    return json.dumps([same, network.facts.get("epochs"), network.facts.get("setting")], sort_keys=True)


def _group(choice: Choice, runs: Sequence[Mapping[int, EvaluatedNetwork]]) -> Group:
    name = next(network.facts["recipe"] for own in runs for network in own.values())
    return Group(name, choice, tuple(runs))
