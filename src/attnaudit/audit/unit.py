"""The unit of work: a model and a few inputs in, one Parquet part out."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from torch import Tensor, nn

from attnaudit.audit.measuring import observed_rows, untrained_rows
from attnaudit.audit.memory import check_fits
from attnaudit.audit.settings import AuditSettings
from attnaudit.capture import Capture, Heads, capture
from attnaudit.measures.references import UNTRAINED
from attnaudit.records.notes import Notes
from attnaudit.records.schema import SCHEMA, VERSION
from attnaudit.sources.inputs import Prepared, Shard
from attnaudit.sources.model import LoadedModel
from attnaudit.theories.registry import Theory


@dataclass(frozen=True)
class AuditUnit:
    """Which numbers to compute; `key` names them by everything they depend on."""

    model_label: str
    model_fingerprint: str
    shard: Shard
    settings: AuditSettings
    theories: tuple[Theory, ...]

    @cached_property
    def key(self) -> str:
        """A hash of version, model weights, input contents and settings."""
        identity = {
            "version": VERSION,
            "model": [self.model_label, self.model_fingerprint],
            "inputs": self.shard.identity,
            "settings": self.settings.identity,
        }
        return hashlib.blake2b(json.dumps(identity, sort_keys=True).encode(), digest_size=16).hexdigest()


def compute(unit: AuditUnit, model: LoadedModel, memory: int) -> tuple[pa.Table, Notes]:
    """Prepare the inputs, run the model once (and its untrained twin, if asked for), and measure every head.

    `memory` is what this process may take; heads that do not fit into it are refused.
    """
    prepared = unit.shard.prepare(model, unit.settings.protocol)
    if prepared.inputs is None:
        return SCHEMA.empty_table(), Notes(prepared.skipped, {}, ())
    device, label = unit.settings.device, unit.model_label
    captured = capture_prepared(model.module, prepared, device, label)
    check_fits(captured.layers, model.module, memory)
    refusals = tuple((refusal.layer, refusal.reason) for refusal in captured.refusals)
    certificate, solved = dict(captured.certificate.errors), Counter[str]()
    layers = list(captured.layers)
    del captured  # so that the list alone holds the layers, and each can go when it is measured
    tables = list(observed_rows(_emptying(layers), unit.theories, unit.settings, solved))
    if UNTRAINED in unit.settings.references and model.untrained is not None:
        twin = capture_prepared(model.untrained(unit.settings.seed + 1), prepared, device, label)
        layers = list(twin.layers)
        del twin
        tables += untrained_rows(_emptying(layers), unit.theories, unit.settings)
    return pa.concat_tables(tables), Notes(prepared.skipped, certificate, refusals, dict(solved))


def _emptying(layers: list[Heads]) -> Iterator[Heads]:
    """Each layer in order, forgotten by the list when it is handed out."""
    while layers:
        yield layers.pop(0)


def capture_prepared(module: nn.Module, prepared: Prepared, device: str, label: str) -> Capture:
    """Move model and inputs to a device and capture."""
    return capture(module.to(device), on_device(prepared, device), prepared.names, model_name=label)


def on_device(prepared: Prepared, device: str) -> Tensor | dict[str, Tensor]:
    """What the model is called with, where it runs."""
    if isinstance(prepared.inputs, Tensor):
        return prepared.inputs.to(device)
    return {name: value.to(device) for name, value in (prepared.inputs or {}).items()}
