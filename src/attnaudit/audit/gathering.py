"""What the fits need of all inputs, gathered while these are measured anyway.

A process that measures every input of a model need not read, run and solve them again for the best projections. Several
workers share what they find by `audit.handover`. Where neither helps, as in a resumed run, the fits make a pass of
their own: the numbers are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import torch

from attnaudit.audit.handover import Leaving
from attnaudit.capture import Heads
from attnaudit.measures import Selection
from attnaudit.measures.ceiling import Ceiling, PredictedSpans, has_ceiling, kept_bytes
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.measure_input import PredictedValues
from attnaudit.measures.sensitivity import measure_sensitivity
from attnaudit.records.rows import rows_of

#: Noise and other gauges are tried on this many inputs of the first shard, and the untrained twin has this many: they
#: say how scores are to be read, and decide nothing.
SAMPLE = 2
#: The share of a GPU's memory, or of what a process may take, that is used for it.
_SHARE = 0.2


@dataclass
class Gathering:
    """The ceiling of a model so far, and the names of all inputs that were added."""

    ceiling: Ceiling
    names: list[str] = field(default_factory=list)

    def covers(self, names: Sequence[str]) -> bool:
        """Whether these inputs were added, in this order, and no others."""
        return self.names == list(names)


@dataclass(frozen=True)
class Gatherings:
    """Of the models of a worker, each if it fits into memory; `memory` is what the process may take."""

    memory: int
    _found: dict[tuple[str, str], Gathering | None] = field(default_factory=dict)

    def of(
        self, model: tuple[str, str], selection: Selection, halves: Mapping[str, int], layers: Sequence[Heads]
    ) -> Gathering | None:
        """That of a model, begun with its first layers; None if it would take too much, or nothing is to be fitted."""
        if model not in self._found:
            fits = halves and layers and has_ceiling(selection) and self._room(layers) > kept_bytes(layers, selection)
            self._found[model] = Gathering(Ceiling(selection.predicting, halves)) if fits else None
        return self._found[model]

    def of_all(self, model: tuple[str, str], names: Sequence[str]) -> Gathering | None:
        """That of a model if it has all these inputs."""
        found = self._found.get(model)
        return found if found is not None and found.covers(names) else None

    def _room(self, layers: Sequence[Heads]) -> float:
        device = layers[0].key.device
        return room_left(
            torch.cuda.get_device_properties(device).total_memory if device.type == "cuda" else self.memory
        )


def room_left(memory: int) -> float:
    """How much of this memory what is gathered may take."""
    return _SHARE * memory


@dataclass
class PredictionUses:
    """What becomes of the predictions of a unit beside its measures: sensitivity, and what the fits need."""

    selection: Selection
    tried: Sequence[str]
    ceiling: Ceiling | None = None
    leaving: Leaving | None = None
    sensitivity: list[pa.Table] = field(default_factory=list)

    def take(self, keys: KeyKernel, predictions: Sequence[PredictedValues]) -> None:
        """Those of one batch."""
        if self.ceiling is not None:
            self.ceiling.add(keys, predictions)
        if self.leaving is not None:
            self.leaving.add(PredictedSpans.of(keys, self.selection.predicting, predictions))
        self.sensitivity.append(rows_of(measure_sensitivity(keys, self.selection, self.tried, predictions)))
