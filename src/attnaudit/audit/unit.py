"""The unit of work of an audit: a model and a few inputs in, the rows of all heads out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

import pyarrow as pa
from torch import Tensor, nn

from attnaudit.audit.fit_unit import FitUnit
from attnaudit.audit.gathering import SAMPLE, Gatherings, PredictionUses, room_left
from attnaudit.audit.handover import Handover, Leaving
from attnaudit.audit.memory import check_fits, room_for_inputs
from attnaudit.audit.settings import AuditSettings
from attnaudit.capture import Capture, Heads, capture
from attnaudit.capture.capture import naming_failures
from attnaudit.capture.key_heads import by_key_head
from attnaudit.errors import WeightsError
from attnaudit.measures import Measure, Reference, Selection
from attnaudit.measures.batches import batches, joined_layers, of_first_inputs
from attnaudit.measures.ceiling import Ceiling, has_ceiling
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.measuring import measure_fits, measure_heads, measure_network, measure_primal
from attnaudit.measures.two_passes import TwoPasses, two_passes
from attnaudit.numerics.allocation import reuse_freed_memory
from attnaudit.numerics.digest import digest
from attnaudit.numerics.threads import single_threaded
from attnaudit.records.notes import Notes
from attnaudit.records.rows import rows_of
from attnaudit.records.schema import SCHEMA, VERSION
from attnaudit.sources.ahead import PreparedAhead, each_ahead
from attnaudit.sources.inputs import Prepared, Shard
from attnaudit.sources.model import LoadedModel, ModelSpec, load_model
from attnaudit.theories.base import Theory


@dataclass(frozen=True)
class AuditUnit:
    """Which numbers to compute; the untrained twin of the model is measured on the first `twin_inputs` of the shard.

    Noise and other gauges are tried on its first `tried_inputs`. What decides nothing is measured of references if the
    unit has `context`: the first units of a model have. `halves` are those of all inputs (see `halves_of`) if something
    is to be fitted to them, in `fit_parts` units; neither changes a number here.
    """

    model_label: str
    model_fingerprint: str
    shard: Shard
    twin_inputs: int
    tried_inputs: int
    context: bool
    settings: AuditSettings
    own: tuple[Measure | Theory | Reference, ...]
    own_fingerprints: tuple[tuple[str, str], ...] = ()
    halves: Mapping[str, int] = field(default_factory=dict, compare=False)
    fit_parts: int = field(default=0, compare=False)

    @cached_property
    def key(self) -> str:
        """A hash of version, model weights, input contents, settings, and what is the user's own."""
        inputs = [self.shard.identity, self.twin_inputs, self.tried_inputs]
        model = [self.model_label, self.model_fingerprint]
        return digest(VERSION, model, inputs, self.context, self.settings.identity, self.own_fingerprints)

    @property
    def label(self) -> str:
        """The model."""
        return self.model_label


@dataclass(frozen=True)
class AuditWorker:
    """Measures the heads of models that are loaded in this process; heads that do not fit into `memory` are refused.

    In `shared`, if there are others on this machine, workers leave what the fits need of their inputs.
    """

    models: tuple[LoadedModel, ...]
    memory: int
    shared: Path | None = None
    _ahead: PreparedAhead = field(default_factory=PreparedAhead, compare=False)

    @cached_property
    def _gatherings(self) -> Gatherings:
        return Gatherings(self.memory)

    def context(self) -> AbstractContextManager[None]:
        """One thread, so that sums do not depend on the number of cores."""
        reuse_freed_memory()
        return single_threaded()

    def compute(
        self, unit: AuditUnit | FitUnit, following: AuditUnit | FitUnit | None = None
    ) -> tuple[pa.Table, Notes]:
        """The rows of a unit of either kind, while the inputs of the following one are prepared."""
        return self._heads(unit, following) if isinstance(unit, AuditUnit) else self._fits(unit)

    def _fits(self, unit: FitUnit) -> tuple[pa.Table, Notes]:
        """Best projections and fitted theories."""
        selection = unit.settings.selection(unit.own)
        passes = two_passes(selection, unit.halves, list(unit.halves)[:SAMPLE])
        names = [name for shard in unit.shards for name, _ in shard.identity]
        gathered = None if passes else self._gatherings.of_all(_named(unit), names)
        if gathered is not None:
            ceiling = gathered.ceiling.of_layers(unit.part, unit.parts)
        else:
            ceiling = Ceiling(selection.predicting if has_ceiling(selection) else (), unit.halves)
            self._first_pass(unit, selection, ceiling, passes)
        tables = [SCHEMA.empty_table(), rows_of(ceiling.measure(selection.protocol))]
        for fitted in passes:
            fitted.fit()
        if passes:
            again = (heads for layers in self._shards(unit, unit.shards) for heads in layers)
            tables.append(rows_of(measure_fits(again, passes, selection)))
        return pa.concat_tables(tables), Notes()

    def _first_pass(self, unit: FitUnit, selection: Selection, ceiling: Ceiling, passes: Sequence[TwoPasses]) -> None:
        """Add all inputs, in order: what another worker has left of them, or else their heads."""
        handover = None if passes else self._handover(unit, unit.parts)
        left = [handover is not None and handover.has(shard, unit.part) for shard in unit.shards]
        computed = self._shards(unit, [shard for shard, there in zip(unit.shards, left, strict=True) if not there])
        for shard, there in zip(unit.shards, left, strict=True):
            if handover is not None and there:
                for spans in handover.taken(shard, unit.part):
                    ceiling.add_spans(spans)
                continue
            for heads in joined_layers(next(computed)):
                for batch, _ in batches(heads, None):
                    keys = KeyKernel(batch, selection.protocol)
                    ceiling.add(keys)
                    for own in passes:
                        own.add(keys)

    def _shards(self, unit: FitUnit, shards: Sequence[Shard]) -> Iterator[list[Heads]]:
        """The layers of a unit, shard by shard, with heads that share their keys as one; none if nothing was read."""
        model = self._model(unit)
        for prepared in each_ahead(shards, partial(self._prepare, unit)):
            if prepared.inputs is None:
                yield []
                continue
            captured = capture_prepared(model.module, prepared, unit.settings.device, unit.model_label)
            check_fits(captured.layers, model.module, self.memory)
            own = (heads for heads in captured.layers if heads.index[0].layer % unit.parts == unit.part)
            yield list(map(by_key_head, own))

    def _handover(self, unit: AuditUnit | FitUnit, parts: int) -> Handover | None:
        """Not on a GPU, where the layers of a batch are not apart."""
        if self.shared is None or not parts or unit.settings.device != "cpu":
            return None
        return Handover(self.shared, _named(unit), parts)

    def _prepare(self, unit: AuditUnit | FitUnit, shard: Shard) -> Prepared:
        model = self._model(unit)
        return shard.prepare(model, unit.settings.protocol, room_for_inputs(model.module, self.memory))

    def _heads(self, unit: AuditUnit, following: AuditUnit | FitUnit | None) -> tuple[pa.Table, Notes]:
        """Prepare the inputs, run the model once (and its untrained twin, if it has inputs), and measure every head."""
        model, prepare = self._model(unit), partial(self._prepare, unit, unit.shard)
        if unit.settings.device != "cpu":
            self._ahead.begin(unit.key, prepare)
            model.module.to(unit.settings.device)  # a GPU takes a second to start, in which inputs are read
        prepared = self._ahead.take(unit.key, prepare)
        if isinstance(following, AuditUnit):
            self._ahead.begin(following.key, partial(self._prepare, following, following.shard))
        if prepared.inputs is None:
            return SCHEMA.empty_table(), Notes(prepared.skipped, {}, ())
        device, label = unit.settings.device, unit.model_label
        captured = capture_prepared(model.module, prepared, device, label)
        check_fits(captured.layers, model.module, self.memory)
        refusals = tuple((refusal.layer, refusal.reason) for refusal in captured.refusals)
        certificate, solved = dict(captured.certificate.errors), Counter[str]()
        attention = {layer: str(traits) for layer, traits in captured.traits.items()}
        layers, primal = list(captured.layers), captured.primal
        del captured  # so that the list alone holds the layers, and each can go when it is measured
        selection = unit.settings.selection(unit.own)
        names = [name for name, _ in unit.shard.identity]
        predicted = PredictionUses(selection, names[: unit.tried_inputs])
        handover = self._handover(unit, unit.fit_parts) if has_ceiling(selection) else None
        if handover is not None:
            predicted.leaving = Leaving(room_left(self.memory) * len(names) / len(unit.halves))
        elif (gathering := self._gatherings.of(_named(unit), selection, unit.halves, layers)) is not None:
            gathering.names += names
            predicted.ceiling = gathering.ceiling
        tables = [rows_of(measure_heads(_emptying(layers), selection, solved, predicted.take, context=unit.context))]
        tables += predicted.sensitivity
        if handover is not None and predicted.leaving is not None:
            handover.leave(unit.shard, predicted.leaving)
        tables += [rows_of(measure_primal(heads, selection)) for heads in primal.values()]
        network = next((reference for reference in selection.references if reference.network), None)
        if unit.twin_inputs and network is not None and model.untrained is not None:
            twin = capture_prepared(model.untrained(unit.settings.seed + 1), prepared, device, label)
            layers = [of_first_inputs(heads, unit.twin_inputs) for heads in twin.layers]
            del twin
            tables.append(rows_of(measure_network(_emptying(layers), network, selection)))
        return pa.concat_tables(tables), Notes(prepared.skipped, certificate, refusals, dict(solved), attention)

    def _model(self, unit: AuditUnit | FitUnit) -> LoadedModel:
        """The model of a unit, which must be the one that the run began with."""
        for model in self.models:
            if (model.label, model.fingerprint) == (unit.model_label, unit.model_fingerprint):
                return model
        raise _other_model(unit.model_label)


@dataclass(frozen=True)
class AuditRecipe:
    """How another process loads a model and audits it; `fingerprint` is of the model that the run began with.

    `modules` are imported for it: those that define what is computed here, and the layers of the network.

    A recipe is equal to another only if the models are, so that a process never keeps a model that was replaced since.
    """

    spec: ModelSpec
    fingerprint: str
    modules: tuple[str, ...] = ()

    def build(self, memory: int, shared: Path | None = None) -> AuditWorker:
        """A worker with this model alone.

        Raises:
            WeightsError: the files are not those that the run began with.
        """
        with single_threaded():
            loaded = load_model(self.spec)
        if loaded.fingerprint != self.fingerprint:
            raise _other_model(loaded.label)
        return AuditWorker((loaded,), memory, shared)


def _other_model(label: str) -> WeightsError:
    return WeightsError(
        f"A worker loaded other weights for {label} than this run began with, or another config or tokenizer: give all "
        "of them the same files, and repeat the command."
    )


def _named(unit: AuditUnit | FitUnit) -> tuple[str, str]:
    return unit.model_label, unit.model_fingerprint


def _emptying(layers: list[Heads]) -> Iterator[Heads]:
    """Each layer in order, forgotten by the list when it is handed out."""
    while layers:
        yield layers.pop(0)


def capture_prepared(module: nn.Module, prepared: Prepared, device: str, label: str) -> Capture:
    """Move model and inputs to a device and capture.

    Raises:
        CaptureError: attention cannot be captured, or the model fails on these inputs.
    """
    with naming_failures(label, prepared.names[0]):
        return capture(
            module.to(device),
            on_device(prepared, device),
            prepared.names,
            model_name=label,
            keep_padding=prepared.keep_padding,
        )


def on_device(prepared: Prepared, device: str) -> Tensor | dict[str, Tensor]:
    """What the model is called with, where it runs."""
    if isinstance(prepared.inputs, Tensor):
        return prepared.inputs.to(device)
    return {name: value.to(device) for name, value in (prepared.inputs or {}).items()}
