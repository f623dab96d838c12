"""Where the time of an audit goes: each stage by itself beside the whole, on one unit of work."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq
import torch
from torch import Tensor

from attnaudit.audit.unit import AuditUnit, AuditWorker, capture_prepared, on_device
from attnaudit.capture import capture
from attnaudit.capture.heads import Heads
from attnaudit.kernel import paper, spectrum
from attnaudit.kernel.gram import centred, normalised_gram
from attnaudit.kernel.prediction import Prediction
from attnaudit.kernel.solvers import eigenpairs
from attnaudit.kernel.spectra import Spectrum
from attnaudit.measures import MeasureInput, evaluate, measure_named
from attnaudit.measures.assignment import matched
from attnaudit.measures.batches import batches, joined_layers
from attnaudit.measures.cosine import unit_rows
from attnaudit.measures.epsilons import epsilons_of
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.measure_input import PredictedValues
from attnaudit.protocol import Protocol
from attnaudit.sources.model import LoadedModel

#: What is timed: the measures of the study's Table 1.
MEASURES = (
    *("direct_cosine_mean", "direct_cosine_max", "matched_cosine_mean", "matched_cosine_max"),
    *("linear_cka", "linear_cka_debiased", "kernel_cka"),
    "allclose",
)
#: Stages that no audit of the same numbers can do without: their sum is the floor.
FLOOR = ("forward", "gram", "eigen-solve", "assignment")


@dataclass(frozen=True)
class Stages:
    """Seconds of each stage, of the whole, and the number of heads they are for."""

    seconds: Mapping[str, float]
    total: float
    heads: int

    @property
    def floor(self) -> float:
        """What the indispensable stages take by themselves."""
        return sum(self.seconds[name] for name in FLOOR)

    @property
    def other(self) -> float:
        """What the whole takes beyond the stages that were timed."""
        return self.total - sum(self.seconds.values())


def measure_stages(model: LoadedModel, unit: AuditUnit, memory: int, repeats: int = 5) -> Stages:
    """Time one unit as a whole and stage by stage; the fastest of `repeats` each, after one that warms up."""
    prepared = unit.shard.prepare(model, unit.settings.protocol)
    device = unit.settings.device
    captured = capture_prepared(model.module, prepared, device, unit.model_label)
    parts = [batch for heads in joined_layers(captured.layers) for batch, _ in batches(heads, None)]
    clock = _Clock(device, repeats)
    inputs = on_device(prepared, device)
    seconds = {"forward": clock(lambda: _forward(model, inputs))}
    seconds["capture"] = clock(lambda: _captured(model, inputs)) - seconds["forward"]
    for name, stage in _STAGES.items():
        work = [stage(heads, unit.settings.protocol) for heads in parts]
        seconds[name] = sum(clock(part) for part in work)
    if unit.settings.protocol is Protocol.EXACT:
        seconds["eigen-solve"] -= seconds["gram"]  # one call does both
    worker = AuditWorker((model,), memory)
    table, _ = worker.compute(unit)
    seconds["write"] = clock(lambda: pq.write_table(table, io.BytesIO(), compression="zstd"))

    def whole() -> None:
        rows, _ = worker.compute(unit)
        pq.write_table(rows, io.BytesIO(), compression="zstd")

    return Stages(seconds, clock(whole), sum(len(heads) for heads in captured.layers))


class _Clock:
    """Seconds of the fastest of several calls: of the processor, undisturbed by others, or until a GPU is done."""

    def __init__(self, device: str, repeats: int) -> None:
        self._wait: Callable[[], Any] = torch.cuda.synchronize if device != "cpu" else (lambda: None)
        self._now = time.perf_counter if device != "cpu" else time.process_time
        self._repeats = repeats

    def __call__(self, work: Callable[[], Any]) -> float:
        work()
        best = float("inf")
        for _ in range(self._repeats):
            self._wait()
            begin = self._now()
            work()
            self._wait()
            best = min(best, self._now() - begin)
        return best


@torch.no_grad()
def _forward(model: LoadedModel, inputs: Any) -> None:
    model.module(**inputs) if isinstance(inputs, Mapping) else model.module(inputs)


def _captured(model: LoadedModel, inputs: Any) -> None:
    capture(model.module, inputs)


def _gram(heads: Heads, protocol: Protocol) -> Callable[[], Tensor]:
    if protocol is Protocol.PAPER:
        return lambda: paper.centred_gram(heads.key.float())[0]
    return lambda: centred(normalised_gram(heads.key, heads.scale).matrix)


def _eigen(heads: Heads, protocol: Protocol) -> Callable[[], Any]:
    if protocol is Protocol.EXACT:
        rank = min(heads.value.shape[-1], heads.tokens)
        return lambda: spectrum(heads.key, rank, scale=heads.scale)
    matrix = _gram(heads, protocol)()
    return lambda: eigenpairs(matrix)


@dataclass(frozen=True)
class _Given:
    """A theory whose prediction is there already."""

    prediction: Prediction
    name: str = "given"
    text: str = "a prediction made before"

    def predict(self, heads: Heads, spectrum: Spectrum, protocol: Protocol) -> Prediction:
        return self.prediction


def _assignment(heads: Heads, protocol: Protocol) -> Callable[[], Any]:
    epsilons, predicted = epsilons_of(protocol), MeasureInput.of(heads, protocol).prediction.values
    cosines = unit_rows(heads.value.to(predicted.dtype), epsilons) @ unit_rows(predicted, epsilons).mT
    return lambda: matched(cosines)


def _cka(heads: Heads, protocol: Protocol) -> Callable[[], Any]:
    measures = [measure_named(name) for name in ("linear_cka", "linear_cka_debiased", "kernel_cka")]
    theory = _Given(MeasureInput.of(heads, protocol).prediction)
    keys = KeyKernel(heads, protocol)
    _ = keys.spectrum  # this and the prediction belong to other stages
    return lambda: evaluate(measures, MeasureInput(heads, keys, PredictedValues(keys, theory)))


_STAGES: Mapping[str, Callable[[Heads, Protocol], Callable[[], Any]]] = {
    "gram": _gram,
    "eigen-solve": _eigen,
    "assignment": _assignment,
    "cka": _cka,
}
