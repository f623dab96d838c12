"""The views of heads on the first inputs of an audit, as units of work that change nothing of its own parts."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from torch import Tensor

from attnaudit.audit.input_views import input_views
from attnaudit.audit.memory import check_fits, room_for_inputs
from attnaudit.audit.plan import AuditPlan
from attnaudit.audit.unit import AuditRecipe, AuditWorker, capture_prepared
from attnaudit.numerics.digest import digest
from attnaudit.numerics.threads import single_threaded
from attnaudit.protocol import Protocol
from attnaudit.records import json_file
from attnaudit.records.head_views import SCHEMA, VERSION, InputView, ViewsIdentity, table_of
from attnaudit.records.notes import Notes
from attnaudit.sources.inputs import Prepared, Shard
from attnaudit.sources.model import LoadedModel


@dataclass(frozen=True)
class ViewUnit:
    """A model and the first `inputs` of a shard."""

    model_label: str
    model_fingerprint: str
    shard: Shard
    inputs: int
    protocol: Protocol
    device: str

    @cached_property
    def key(self) -> str:
        """A hash of model weights, input contents, and how they are captured."""
        model, inputs = [self.model_label, self.model_fingerprint], [self.shard.identity, self.inputs]
        return digest("views", VERSION, model, inputs, self.protocol.value, self.device)

    @property
    def label(self) -> str:
        """The model."""
        return f"{self.model_label}, maps of heads"


@dataclass(frozen=True)
class ViewWorker:
    """Views of the heads of models that are loaded in this process."""

    models: tuple[LoadedModel, ...]
    memory: int

    def context(self) -> AbstractContextManager[None]:
        """One thread, so that sums do not depend on the number of cores."""
        return single_threaded()

    def compute(self, unit: ViewUnit, following: ViewUnit | None = None) -> tuple[pa.Table, Notes]:
        """A row for every input, also for one that cannot be read, with the reason."""
        return table_of(self.views(unit)), Notes()

    def views(self, unit: ViewUnit) -> list[InputView]:
        """The same as objects."""
        (model,) = (
            own for own in self.models if (own.label, own.fingerprint) == (unit.model_label, unit.model_fingerprint)
        )
        room = room_for_inputs(model.module, self.memory)
        wanted = [name for name, _ in unit.shard.identity[: unit.inputs]]
        prepared = _only(unit.shard.prepare(model, unit.protocol, room), wanted)
        found = {}
        if prepared.inputs is not None:
            captured = capture_prepared(model.module, prepared, unit.device, model.label)
            check_fits(captured.layers, model.module, self.memory)
            found = {view.input: view for view in input_views(captured, prepared, model, unit.protocol)}
        lost = dict(prepared.skipped)
        missing = {
            name: InputView(model.label, name, None, None, lost.get(name, "it was skipped"), ()) for name in wanted
        }
        return list((missing | found).values())


def _only(prepared: Prepared, wanted: list[str]) -> Prepared:
    """Those of the prepared inputs; their heads are those of the whole batch, as padding stays the same."""
    places = [place for place, name in enumerate(prepared.names) if name in wanted]
    if prepared.inputs is None or not places:
        return replace(prepared, inputs=None, names=())
    given = prepared.inputs
    kept = given[places] if isinstance(given, Tensor) else {name: own[places] for name, own in given.items()}
    return replace(prepared, inputs=kept, names=tuple(prepared.names[place] for place in places))


@dataclass(frozen=True)
class ViewRecipe:
    """How another process loads the model of an audit, to look at its heads."""

    audit: AuditRecipe

    @property
    def modules(self) -> tuple[str, ...]:
        """Those of the audit, and this one."""
        return (*self.audit.modules, __name__)

    def build(self, memory: int, shared: Path | None = None) -> ViewWorker:
        """A worker with this model alone.

        Raises:
            WeightsError: the files are not those that the run began with.
        """
        worker: AuditWorker = self.audit.build(memory)
        return ViewWorker(worker.models, memory)


@dataclass(frozen=True)
class ViewPlan:
    """The heads of all models of an audit on its first `count` inputs."""

    audit: AuditPlan
    count: int

    @cached_property
    def units(self) -> tuple[ViewUnit, ...]:
        """Model by model, in order of inputs."""
        found: dict[str, ViewUnit] = {}
        settings = self.audit.settings
        for model in self.audit.loaded:
            left = self.count
            for shard in self.audit.shards:
                inputs = min(left, len(shard.identity))
                if inputs:
                    named = (model.label, model.fingerprint)
                    unit = ViewUnit(*named, shard, inputs, settings.protocol, settings.device)
                    found[unit.key] = unit
                left -= inputs
        return tuple(found.values())

    @property
    def identity(self) -> dict[str, Any]:
        """That of the audit, whatever the number of inputs."""
        return dict(json_file.plain(ViewsIdentity(digest(self.audit.identity))))

    @property
    def description(self) -> dict[str, Any]:
        """How many inputs each part has."""
        return {"inputs": {unit.key: unit.inputs for unit in self.units}}

    @property
    def schema(self) -> pa.Schema:
        """A row per input."""
        return SCHEMA

    def worker(self, memory: int) -> ViewWorker:
        """A worker with the models as they are loaded here."""
        return ViewWorker(self.audit.loaded, memory)

    def recipe(self, unit: ViewUnit) -> ViewRecipe | None:
        """How to load the model of a unit elsewhere; None for one that was given in memory."""
        recipe = self.audit.recipe_of(unit.model_label, unit.model_fingerprint)
        return None if recipe is None else ViewRecipe(recipe)
