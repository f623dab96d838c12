"""The unit of work that needs all inputs of a model: what is fitted to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from attnaudit.audit.settings import AuditSettings
from attnaudit.measures import Measure, Reference
from attnaudit.numerics.digest import digest
from attnaudit.records.schema import VERSION
from attnaudit.sources.inputs import Shard
from attnaudit.theories.base import Theory


@dataclass(frozen=True)
class FitUnit:
    """The best projections of some layers, which need all inputs: those whose number modulo `parts` is `part`.

    `groups` says which inputs belong together, as (name, group).
    """

    model_label: str
    model_fingerprint: str
    shards: tuple[Shard, ...]
    groups: tuple[tuple[str, str], ...]
    part: int
    parts: int
    settings: AuditSettings
    own: tuple[Measure | Theory | Reference, ...]
    own_fingerprints: tuple[tuple[str, str], ...] = ()

    @cached_property
    def key(self) -> str:
        """A hash of version, model weights, inputs and their halves, settings, what is the user's own, and layers."""
        model, own = [self.model_label, self.model_fingerprint], self.own_fingerprints
        inputs = [[*entry, self.halves[entry[0]]] for shard in self.shards for entry in shard.identity]
        return digest(VERSION, "fit", self.part, self.parts, model, inputs, self.settings.identity, own)

    @property
    def label(self) -> str:
        """The model."""
        return f"{self.model_label}, best projections"

    @cached_property
    def halves(self) -> dict[str, int]:
        """The half of every input."""
        return halves_of(self.shards, self.groups)


def halves_of(shards: Sequence[Shard], groups: Sequence[tuple[str, str]]) -> dict[str, int]:
    """0 or 1 for every input: they alternate, but inputs that belong together are in the same half."""
    group_of, names = dict(groups), [name for shard in shards for name, _ in shard.identity]
    places = {group: place for place, group in enumerate(dict.fromkeys(group_of.get(own, own) for own in names))}
    return {name: places[group_of.get(name, name)] % 2 for name in names}
