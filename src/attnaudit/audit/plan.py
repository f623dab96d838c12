"""What an audit will compute, and the name of exactly that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from attnaudit.audit.settings import AuditSettings
from attnaudit.audit.unit import AuditRecipe, AuditUnit, AuditWorker
from attnaudit.measures import Measure, Reference, Selection
from attnaudit.numerics.digest import digest
from attnaudit.records import json_file
from attnaudit.records.audit import AuditIdentity
from attnaudit.records.files import file_name
from attnaudit.records.schema import SCHEMA
from attnaudit.sources.inputs import Shard
from attnaudit.sources.model import LoadedModel, ModelSpec, load_model
from attnaudit.sources.module_identity import object_fingerprint
from attnaudit.theories.base import Theory


@dataclass(frozen=True)
class AuditPlan:
    """Models (as given, and built), inputs and settings, with the units of work they come to."""

    models: tuple[ModelSpec | LoadedModel, ...]
    loaded: tuple[LoadedModel, ...]
    shards: tuple[Shard, ...]
    settings: AuditSettings
    selection: Selection

    @cached_property
    def units(self) -> tuple[AuditUnit, ...]:
        """Model by model, in order of inputs."""
        return tuple(
            AuditUnit(model.label, model.fingerprint, shard, self.settings, self.selection.own, self._own)
            for model in self.loaded
            for shard in self.shards
        )

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything the evidence depends on, as plain data."""
        models = tuple((model.label, model.fingerprint) for model in self.loaded)
        inputs = tuple(entry for shard in self.shards for entry in shard.identity)
        return dict(json_file.plain(AuditIdentity(self.settings, models, inputs, self._own)))

    @cached_property
    def _own(self) -> tuple[tuple[str, str], ...]:
        """Of a user's own measures, theories and references: another one may have the same name tomorrow."""
        return tuple((entry.name, object_fingerprint(entry)) for entry in self.selection.own)

    @property
    def description(self) -> dict[str, Any]:
        """Where the weights come from, and what was left out of them or filled in."""
        return {
            "weights": {model.label: model.weights_origin for model in self.loaded},
            "loading": {model.label: list(model.notes) for model in self.loaded},
        }

    @property
    def schema(self) -> pa.Schema:
        """The columns of evidence."""
        return SCHEMA

    @property
    def name(self) -> str:
        """A folder name: the first model, the protocol, and a hash of the identity."""
        label = file_name(self.loaded[0].label)
        more = f"-and-{len(self.loaded) - 1}-more" if len(self.loaded) > 1 else ""
        return f"{label}{more}-{self.settings.protocol.value}-{digest(self.identity, size=4)}"

    def worker(self, memory: int) -> AuditWorker:
        """A worker with the models as they are loaded here."""
        return AuditWorker(self.loaded, memory)

    def recipe(self, unit: AuditUnit) -> AuditRecipe | None:
        """How to load the model of a unit elsewhere; None for one that was given in memory."""
        return self._recipes[unit.model_label, unit.model_fingerprint]

    @cached_property
    def _recipes(self) -> dict[tuple[str, str], AuditRecipe | None]:
        found: dict[tuple[str, str], AuditRecipe | None] = {}
        for model, loaded in zip(self.models, self.loaded, strict=True):
            recipe = None
            if isinstance(model, ModelSpec):
                absolute = replace(model, weights=model.weights and model.weights.absolute())
                recipe = AuditRecipe(absolute, loaded.fingerprint)
            found[loaded.label, loaded.fingerprint] = recipe
        return found


def plan_audit(
    models: Sequence[ModelSpec | LoadedModel],
    shards: Sequence[Shard],
    settings: AuditSettings,
    own: Sequence[Measure | Theory | Reference] = (),
) -> AuditPlan:
    """Build the models and lay out the work; `own` are objects that the settings name and no registry knows."""
    selection = settings.selection(own)
    settings = replace(settings, theories=tuple(theory.name for theory in selection.theories))
    loaded = tuple(model if isinstance(model, LoadedModel) else load_model(model) for model in models)
    return AuditPlan(tuple(models), loaded, tuple(shards), settings, selection)
