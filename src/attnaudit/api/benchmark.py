"""Time the default audit by stage, and the floor of its parts."""

from __future__ import annotations

import functools
import logging
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch

from attnaudit import defaults
from attnaudit.api import audits
from attnaudit.api.hooks import PACKAGES, hooks
from attnaudit.api.runs import Run
from attnaudit.audit.benchmark import Benchmark
from attnaudit.audit.floor import Stopwatch, floor_by_stage, reference_seconds
from attnaudit.audit.gathering import SAMPLE
from attnaudit.audit.inspection import with_any_weights
from attnaudit.audit.needs import Needs
from attnaudit.audit.stages import AROUND, Hook, StageClock, watching
from attnaudit.audit.unit import capture_prepared, on_device
from attnaudit.capture.heads import Heads
from attnaudit.capture.key_heads import by_key_head
from attnaudit.errors import MissingExtraError
from attnaudit.measures.batches import batches, joined_layers
from attnaudit.numerics.devices import device_name
from attnaudit.numerics.threads import single_threaded
from attnaudit.protocol import Protocol
from attnaudit.records.engine import execute
from attnaudit.records.notes import Notes
from attnaudit.records.parts import encode_part
from attnaudit.report import references, theory_map
from attnaudit.report.progress import busy
from attnaudit.sources.inputs import Prepared
from attnaudit.sources.model import LoadedModel, ModelSpec, load_model, parse_model
from attnaudit.sources.selection import InputSelection, select_inputs

_log = logging.getLogger(__name__)
#: The kernels of the floor are timed on this many units of work, and on this many batches of heads of each.
_UNITS, _BATCHES = 3, 4
#: What a new process does to be where this one is before an audit begins; it says how much of the processor that took.
_IMPORTS = "import attnaudit.api.benchmark, time; print(time.process_time())"
_ENGINE = "engine"
_STAGES = "timing an audit and then its parts (--limit N draws fewer inputs)"
T = TypeVar("T")


@dataclass(frozen=True)
class _Audit:
    """A default audit, which can be run several times."""

    model: str
    place: Path | None
    weights: Path | None
    random_weights: bool
    limit: int
    device: str

    def run(self, out: Path) -> Run:
        """From names to the page in this process, as `attnaudit audit` does it."""
        run = audits.audit(
            self.model,
            self.place,
            weights=self.weights,
            random_weights=self.random_weights,
            limit=self.limit,
            device=self.device,
            workers=1,
            out=out,
            progress=False,
        )
        with suppress(MissingExtraError):
            theory_map.theory_figure(run, [run.path / "theories.svg"])
            references.reference_figure(run, run.path / "references.svg")
        run.report()
        return run


def bench(
    model: str = defaults.BENCHED,
    inputs: str | Path | None = None,
    *,
    weights: str | Path | None = None,
    limit: int = defaults.LIMIT,
    device: str = defaults.DEVICE,
) -> Benchmark:
    """Time the default audit of a model by stage on this machine, beside the floor of its parts.

    A real audit runs with the clock; on a GPU it runs twice without it before. Then the kernels that its evidence needs
    are timed. On a CPU the time is that of the processor, on one thread; on a GPU it is wall time.

    Args:
        model: a vision or text model by name; without local weights it has random ones.
        inputs: a folder of images, or a text file or folder; by default those of an audit.
        weights: a local weights file.
        limit: how many inputs to draw.
        device: `auto`, `cpu` or `cuda`.
    """
    place, file = (None if given is None else Path(given) for given in (inputs, weights))
    device = device_name(device)
    spec = parse_model(model, weights=file) if file is not None else with_any_weights(model)
    asked = _Audit(model, place, file, spec.random_seed is not None, limit, device)
    gpu = device != "cpu"
    now, wait = clock_of(device)
    _log.info("Timing the default audit of %s on %s.", spec.label, "the GPU" if gpu else "one CPU thread")
    with single_threaded(), tempfile.TemporaryDirectory() as folder, busy(_STAGES, spinner=False):
        stopwatch, engine, whole = Stopwatch(now, wait), None, []
        for attempt in range(2 if gpu else 0):  # the first one wakes the device
            begun = now()
            _, engine = with_engine_seconds(functools.partial(asked.run, Path(folder) / f"plain-{attempt}"), device)
            whole.append(now() - begun)
        before = reference_seconds(device, stopwatch)
        clock = StageClock(now, wait) if gpu else StageClock(time.thread_time, whole=now)
        with watching(clock, PACKAGES, hooks()), clock.started():
            run = asked.run(Path(folder) / "run")
        reference = (before + reference_seconds(device, stopwatch)) / 2
        clock.seconds[AROUND, "imports"] += _import_seconds(wall=gpu)
        if gpu:  # its context and libraries, and what is compiled or loaded when it is first called
            clock.seconds[AROUND, "first use of the GPU"] += max(0.0, whole[0] - whole[1])
        needs = Needs.of(run.rows)
        count = len(run.settings.identity.inputs)
        least = _floor(asked, spec, needs, count, stopwatch)
        least["evidence"] = stopwatch(functools.partial(encode_part, "", run.evidence, Notes()))
        refined = sum(spent for (_, stage), spent in clock.seconds.items() if stage == "refined projection")
        least["refined projection"] = refined
    where = torch.cuda.get_device_name() if gpu else "one CPU thread"
    return Benchmark(spec.label, where, count, needs.heads, dict(clock.seconds), least, reference, engine)


def with_engine_seconds(work: Callable[[], T], device: str) -> tuple[T, float]:
    """What an audit gives, and how much of its time the engine took, which computes and stores the evidence."""
    clock = StageClock(*clock_of(device))
    with watching(clock, PACKAGES, [Hook(execute, None, begins=_ENGINE)]), clock.started():
        found = work()
    return found, sum(spent for (own, _), spent in clock.seconds.items() if own == _ENGINE)


def clock_of(device: str) -> tuple[Callable[[], float], Callable[[], object]]:
    """The clock of a device, and how to wait for it: processor time of a CPU, wall time of a GPU."""
    if device == "cpu":
        return time.process_time, lambda: None
    return time.perf_counter, torch.cuda.synchronize


def _import_seconds(*, wall: bool) -> float:
    """In a process of its own, because everything is imported here."""
    begun = time.perf_counter()
    said = subprocess.run([sys.executable, "-c", _IMPORTS], capture_output=True, text=True, check=True).stdout
    return time.perf_counter() - begun if wall else float(said)


def _floor(asked: _Audit, spec: ModelSpec, needs: Needs, inputs: int, stopwatch: Stopwatch) -> dict[str, float]:
    """Seconds of the least that the evidence costs, by stage, from some of the units that the audit had."""
    model, selection = load_model(spec), InputSelection(asked.place, asked.limit, known_only=True)
    shards = select_inputs([spec], selection, Protocol.EXACT, asked.device).shards
    reading, forward, count, layers = 0.0, 0.0, 0, []
    for shard in shards[:: -(-len(shards) // _UNITS)]:
        prepared = shard.prepare(model, Protocol.EXACT)
        if prepared.inputs is not None:
            reading += stopwatch(functools.partial(shard.prepare, model, Protocol.EXACT))
            layers += list(_heads(model, prepared, asked))
            forward += stopwatch(_forward(model, prepared, asked.device))
            count += len(prepared.names)
    twin = min(SAMPLE, inputs) if model.untrained is not None else 0
    return {
        "read inputs": inputs * reading / count,
        "forward and capture": (inputs + twin) * forward / count,
        **floor_by_stage(needs, layers, stopwatch),
    }


def _heads(model: LoadedModel, prepared: Prepared, asked: _Audit) -> Iterator[Heads]:
    """Some batches of the heads of a unit, cut as the audit cuts them."""
    captured = capture_prepared(model.module, prepared, asked.device, model.label).layers
    found = [batch for heads in joined_layers(map(by_key_head, captured)) for batch, _ in batches(heads, None)]
    yield from found[:: -(-len(found) // _BATCHES)]


def _forward(model: LoadedModel, prepared: Prepared, device: str) -> Callable[[], object]:
    inputs, module = on_device(prepared, device), model.module.to(device)

    @torch.no_grad()
    def run() -> object:
        return module(inputs) if isinstance(inputs, torch.Tensor) else module(**inputs)

    return run
