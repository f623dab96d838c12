"""The unit of work: a model and a few inputs in, one Parquet part out."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import torch

from attnaudit.capture import capture
from attnaudit.evidence.schema import SCHEMA, VERSION, rows
from attnaudit.evidence.settings import Settings
from attnaudit.measures import Evaluation, evaluate
from attnaudit.sources.inputs import Shard
from attnaudit.sources.model import LoadedModel


@dataclass(frozen=True)
class Unit:
    """Which numbers to compute; `key` names them by everything they depend on."""

    model_label: str
    model_fingerprint: str
    shard: Shard
    settings: Settings

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


@dataclass(frozen=True)
class Notes:
    """What a unit has to say beside its rows; kept in the part's metadata, so that resuming loses none of it."""

    skipped: tuple[tuple[str, str], ...]
    certificate: dict[str, float]
    refusals: tuple[tuple[str, str], ...]

    def as_json(self) -> str:
        """For the metadata of a Parquet file."""
        return json.dumps({"skipped": self.skipped, "certificate": self.certificate, "refusals": self.refusals})

    @staticmethod
    def from_json(text: str | bytes) -> Notes:
        """The reverse."""
        content: dict[str, Any] = json.loads(text)
        pairs = {name: tuple((str(a), str(b)) for a, b in content[name]) for name in ("skipped", "refusals")}
        return Notes(pairs["skipped"], content["certificate"], pairs["refusals"])


def compute(unit: Unit, model: LoadedModel) -> tuple[pa.Table, Notes]:
    """Prepare the inputs, run the model once, and measure every head, layer by layer."""
    prepared = unit.shard.prepare(model, unit.settings.protocol)
    if prepared.inputs is None:
        return SCHEMA.empty_table(), Notes(prepared.skipped, {}, ())
    device = torch.device(unit.settings.device)
    inputs = (
        prepared.inputs.to(device)
        if isinstance(prepared.inputs, torch.Tensor)
        else {name: value.to(device) for name, value in prepared.inputs.items()}
    )
    captured = capture(model.module.to(device), inputs, prepared.names, model_name=unit.model_label)
    tables = []
    for heads in captured.layers:
        evaluation = Evaluation(heads, unit.settings.protocol, unit.settings.seed)
        values = evaluate(evaluation, unit.settings.families)
        tables.append(rows(heads, values, evaluation.problems, unit.settings.protocol))
    refusals = tuple((refusal.layer, refusal.reason) for refusal in captured.refusals)
    return pa.concat_tables(tables), Notes(prepared.skipped, dict(captured.certificate.errors), refusals)
