"""What an audit will compute, and the name of exactly that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from attnaudit.audit.fit_unit import FitUnit, halves_of
from attnaudit.audit.gathering import SAMPLE
from attnaudit.audit.settings import AuditSettings
from attnaudit.audit.unit import AuditRecipe, AuditUnit, AuditWorker
from attnaudit.measures import Measure, Reference, Selection
from attnaudit.measures.references.planted import PLANTED_WITH_NOISE
from attnaudit.measures.references.reparametrised import REPARAMETRISED
from attnaudit.numerics.digest import digest
from attnaudit.records import json_file
from attnaudit.records.audit_file import AuditIdentity
from attnaudit.records.files import file_name
from attnaudit.records.keep import Keep
from attnaudit.records.schema import SCHEMA, VERSION
from attnaudit.sources.inputs import FIRST_INPUTS, Shard
from attnaudit.sources.model import LoadedModel, ModelSpec, load_model
from attnaudit.sources.module_identity import object_fingerprint
from attnaudit.theories.base import Theory, is_fitted

#: What is fitted to all inputs is fitted in up to so many parts, each of every so many-th layer, to keep workers busy.
MOST_PARTS = 4
#: A large network is cut into more, so that a part has so many parameters. A fit holds matrices of width x width for
#: every head and theory: with all theories, those of ViT-Base together take more than 10 GB.
_FITTED_AT_ONCE, _FITTED_AT_ONCE_ON_GPU = 16_000_000, 32_000_000
_MOST_PARTS_OF_LARGE = 12


@dataclass(frozen=True)
class AuditPlan:
    """Models (as given, and built), inputs and settings, with the units of work they come to."""

    models: tuple[ModelSpec | LoadedModel, ...]
    loaded: tuple[LoadedModel, ...]
    shards: tuple[Shard, ...]
    settings: AuditSettings
    selection: Selection
    keep: Keep = Keep.ROWS

    @cached_property
    def units(self) -> tuple[AuditUnit | FitUnit, ...]:
        """Model by model, in order of inputs, and then what needs all of them."""
        found: list[AuditUnit | FitUnit] = []
        for model in self.loaded:
            named = (model.label, model.fingerprint)
            own = (self.selection.own, self._own)
            shown = FIRST_INPUTS
            left = SAMPLE if any(reference.network for reference in self.selection.references) else 0
            halves = halves_of(self.shards, self._groups) if self._needs_fits else {}
            parts, tried = self._parts(model) if self._needs_fits else 0, SAMPLE if self._tries else 0
            for shard in self.shards:
                inputs = len(shard.identity)
                counts = (min(left, inputs), min(tried, inputs))
                found.append(
                    AuditUnit(*named, shard, *counts, shown > 0, self.settings, *own, halves=halves, fit_parts=parts)
                )
                left, tried, shown = max(left - inputs, 0), 0, shown - inputs
            if self._needs_fits:
                found += [
                    FitUnit(*named, self.shards, self._groups, part, parts, self.settings, *own)
                    for part in range(parts)
                ]
        return tuple(found)

    def _parts(self, model: LoadedModel) -> int:
        """In how many units best projections are fitted."""
        size = sum(parameter.numel() for parameter in model.module.parameters())
        on_cpu = self.settings.device == "cpu"
        needed = -(-size // (_FITTED_AT_ONCE if on_cpu else _FITTED_AT_ONCE_ON_GPU))
        needed = max(1, min(_MOST_PARTS_OF_LARGE, needed))
        if not on_cpu:
            return needed  # a GPU takes as long for some layers as for all
        return max(needed, min(MOST_PARTS, (len(self.shards) + 1) // 2))  # few inputs are not worth a worker each

    @property
    def _tries(self) -> bool:
        """Whether noise or other gauges are tried."""
        return any(reference in self.selection.references for reference in (PLANTED_WITH_NOISE, REPARAMETRISED))

    @property
    def _needs_fits(self) -> bool:
        """Whether anything needs all inputs."""
        return any(reference.fitted for reference in self.selection.references) or any(
            map(is_fitted, self.selection.theories)
        )

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything the evidence depends on, as plain data."""
        models = tuple((model.label, model.fingerprint) for model in self.loaded)
        inputs = tuple(entry for shard in self.shards for entry in shard.identity)
        return dict(json_file.plain(AuditIdentity(self.settings, models, inputs, self._own, self._groups)))

    @cached_property
    def _groups(self) -> tuple[tuple[str, str], ...]:
        """Inputs that belong together: by document or folder, or because they are the same."""
        groups = {name: group for shard in self.shards for name, group in shard.groups.items()}
        copies: dict[str, list[str]] = {}
        for name, content in dict.fromkeys(entry for shard in self.shards for entry in shard.identity):
            copies.setdefault(content, []).append(name)
        for names in copies.values():
            if len(names) > 1:
                groups |= dict.fromkeys(names, groups.get(names[0], names[0]))
        return tuple(sorted(groups.items()))

    @cached_property
    def _own(self) -> tuple[tuple[str, str], ...]:
        """Of a user's own measures, theories and references: another one may have the same name tomorrow."""
        return tuple((entry.name, object_fingerprint(entry)) for entry in self.selection.own)

    @property
    def description(self) -> dict[str, Any]:
        """Where the weights come from, what was left out of them or filled in, and what is kept of the evidence."""
        found = {
            "weights": {model.label: model.weights_origin for model in self.loaded},
            "loading": {model.label: list(model.notes) for model in self.loaded},
            "keep": self.keep.value,
        }
        return found if self.keep is Keep.ROWS else {**found, "parts": list(self.summary_parts)}

    @cached_property
    def summary_parts(self) -> dict[str, tuple[str, ...]]:
        """The keys of the summaries of every model, each with the keys of the units that they are of."""
        units: dict[tuple[str, str], list[str]] = {}
        for unit in self.units:
            units.setdefault((unit.model_label, unit.model_fingerprint), []).append(unit.key)
        unique = [tuple(dict.fromkeys(keys)) for keys in units.values()]
        return {digest(VERSION, "summaries", list(keys), self._groups): keys for keys in unique}

    @property
    def groups(self) -> dict[str, str]:
        """What inputs belong to, by name, where they are not independent."""
        return dict(self._groups)

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

    def recipe(self, unit: AuditUnit | FitUnit) -> AuditRecipe | None:
        """How to load the model of a unit elsewhere; None for one that was given in memory."""
        return self.recipe_of(unit.model_label, unit.model_fingerprint)

    def recipe_of(self, label: str, fingerprint: str) -> AuditRecipe | None:
        """The same for a model by its label and fingerprint."""
        return self._recipes[label, fingerprint]

    @cached_property
    def _recipes(self) -> dict[tuple[str, str], AuditRecipe | None]:
        found: dict[tuple[str, str], AuditRecipe | None] = {}
        for model, loaded in zip(self.models, self.loaded, strict=True):
            recipe = None
            if isinstance(model, ModelSpec):
                absolute = replace(model, weights=model.weights and model.weights.absolute())
                layers = {type(layer).__module__ for layer in loaded.module.modules()}
                recipe = AuditRecipe(absolute, loaded.fingerprint, (AuditUnit.__module__, *sorted(layers)))
            found[loaded.label, loaded.fingerprint] = recipe
        return found


def plan_audit(
    models: Sequence[ModelSpec | LoadedModel],
    shards: Sequence[Shard],
    settings: AuditSettings,
    own: Sequence[Measure | Theory | Reference] = (),
    keep: Keep = Keep.ROWS,
) -> AuditPlan:
    """Build the models and lay out the work; `own` are objects that the settings name and no registry knows."""
    selection = settings.selection(own)
    settings = replace(settings, theories=tuple(theory.name for theory in selection.theories))
    loaded = tuple(model if isinstance(model, LoadedModel) else load_model(model) for model in models)
    return AuditPlan(tuple(models), loaded, tuple(shards), settings, selection, keep)
