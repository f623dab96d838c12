"""The monitor: what attention does while a model trains, measured on fixed batches, without touching the training."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import pyarrow as pa
from torch import nn
from torch.optim import Optimizer

from attnaudit.capture.capture import Inputs
from attnaudit.errors import UsageError
from attnaudit.measures import REFERENCES, select
from attnaudit.records.evidence import Evidence
from attnaudit.records.notes import Notes
from attnaudit.records.run_folder import RunFolder
from attnaudit.records.schema import SCHEMA, at_step
from attnaudit.training import ranks
from attnaudit.training.callbacks import lightning_callback, trainer_callback
from attnaudit.training.fixed_batches import fixed_batches
from attnaudit.training.probe import MEASURES, Probe
from attnaudit.training.readings import Reading, read
from attnaudit.training.steps import StepCounter
from attnaudit.training.store import FolderStore, MemoryStore
from attnaudit.training.tensorboard import Writer, open_writer, write_curves
from attnaudit.training.untouched import Mode, unwrapped

#: Those that need no other network.
_REFERENCES = tuple(name for name, reference in REFERENCES.items() if not reference.network)


class Monitor:
    """Per layer and head, every so many steps: ‖φ(q)‖², ‖h‖², J, and where the heads lie between chance and the theory.

    The model runs as it is written, without autocast and compilation, in the type of its parameters and in evaluation
    mode unless `mode` says otherwise; the numbers are float64. Gradients, random states, and modes, buffers and
    attributes of its modules are afterwards what they were.

    In a distributed training every rank looks at its own batches and the numbers are over the tokens of all ranks;
    rank 0 writes, talks and keeps the readings, and the inputs that are scored are its own.

    Args:
        model: any torch module, also inside `DistributedDataParallel` or `torch.compile`.
        batches: what the model is called with, a tensor or a tuple of arguments; or several batches by name, as in
            `{"train": x, "test": {"input_ids": ids}}`. A mapping always means names.
        out: a folder for the evidence, or a `RunFolder` that is open already; in memory if None.
        every: steps between two measurements, or "epoch" with a callback.
        name: how the model is called in the evidence; its class if None.
        scores: how many inputs of each batch are measured against their references.
        references: which references; see `attnaudit ls references`.
        legacy: also the formula of Teo & Nguyen's code, for comparison with their curves.
        tensorboard: a folder, or a `SummaryWriter`.
        tell: is given one line per measurement; the logger `attnaudit.training` gets it if None.
        seed: of the references, and of what is random in a forward pass in mode "train".
        mode: "eval", or "train" to measure with drop-path and the like, as the study does for its training batch; one
            for all batches, or a mapping of their names.
    """

    def __init__(
        self,
        model: nn.Module,
        batches: Inputs | Mapping[str, Inputs],
        *,
        out: str | Path | RunFolder | None = None,
        every: int | Literal["epoch"] = 500,
        name: str | None = None,
        scores: int = 2,
        references: Sequence[str] = _REFERENCES,
        legacy: bool = False,
        tensorboard: str | Path | Writer | None = None,
        tell: Callable[[str], object] | None = None,
        seed: int = 0,
        mode: Mode | Mapping[str, Mode] = "eval",
    ) -> None:
        if every != "epoch" and (not isinstance(every, int) or every < 1):
            raise UsageError(f'every is {every!r}: it is a number of steps, at least 1, or "epoch".')
        if scores < 0:
            raise UsageError(f"scores is {scores}: it is the number of inputs to score, 0 for none.")
        selection = select(measures=MEASURES, references=references, seed=seed)
        for reference in selection.references:
            if reference.network:
                raise UsageError(
                    f"A monitor has no other network for the reference {reference.name!r}: compare with its own step 0 "
                    "instead."
                )
        inner = unwrapped(model)
        self._probe = Probe(
            inner,
            name or type(inner).__name__,
            fixed_batches(inner, batches, mode),
            selection,
            scores,
            legacy,
        )
        self._out = Path(out) if isinstance(out, str) else out
        self._every = every
        self._tensorboard = tensorboard
        self._tell = tell or logging.getLogger(__package__).info
        self._refused: set[tuple[str, str]] = set()
        self._counter: StepCounter | None = None
        self._measured: int | None = None
        #: What was read at every step so far, in the order of measuring.
        self.history: list[Reading] = []

    def attach(self, optimizer: Optimizer, *, step: int = 0) -> Self:
        """Measure the start, and then after every `every`-th step of the optimiser; `step` is where training stands."""
        if self._every == "epoch":
            raise UsageError(
                "An optimiser does not know where an epoch ends: give every as a number of steps, use a callback, "
                "or call monitor.measure(step)."
            )
        self.detach()
        self._counter = StepCounter(optimizer, self._due, self.after_step, step)
        self.begin(step)
        return self

    def detach(self) -> None:
        """Stop watching the optimiser; nothing of the monitor is left in it."""
        if self._counter is not None:
            self._counter.remove()
            self._counter = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.detach()

    def lightning(self) -> Any:
        """A callback for Lightning's `Trainer`."""
        return lightning_callback(self)

    def for_trainer(self) -> Any:
        """A callback for transformers' `Trainer`."""
        return trainer_callback(self)

    def begin(self, step: int) -> None:
        """Training starts, or goes on, at a step: the very start is always measured."""
        if step == 0 or self._due(step):
            self.measure(step)

    def after_step(self, step: int) -> None:
        """A step was taken: measure if it is due and not measured yet."""
        if self._due(step) and step != self._measured:
            self.measure(step)

    def after_epoch(self, step: int) -> None:
        """An epoch is over: measure if that is when it is due."""
        if self._every == "epoch" and step != self._measured:
            self.measure(step)

    def _due(self, step: int) -> bool:
        return self._every != "epoch" and step % self._every == 0

    def measure(self, step: int) -> pa.Table:
        """Measure now, whatever is due, and return the rows: on rank 0, none elsewhere. All ranks must call this.

        Raises:
            CaptureError: no layer of the model can be captured.
            InputError: the model cannot be called with a batch.
            RunFolderError: `out` cannot be written, or holds something else.
        """
        ranks.together(self._open)  # so that a folder that cannot be used is an error before the work, on all ranks
        measured = self._probe.measure()
        self._measured = step
        if measured is None:
            return SCHEMA.empty_table()
        table, notes = at_step(measured[0], step), measured[1]
        self._store.add(step, table, notes)
        self._report(step, table, notes)
        return table

    def _report(self, step: int, table: pa.Table, notes: Notes) -> None:
        new = [refusal for refusal in notes.refusals if refusal not in self._refused]
        if new:
            self._refused.update(new)
            named = "; ".join(f"{layer}: {reason}" for layer, reason in new)
            total = len(notes.certificate) + len(notes.refusals)
            self._tell(f"{len(new)} of {total} attention layers are not measured ({named})")
        names = [batch.name for batch in self._probe.batches]
        reading = read(step, table, names, self._probe.label, self._probe.selection.seed)
        self.history.append(reading)
        if self._writer is not None:
            write_curves(self._writer, reading, table, names)
        self._tell(reading.line)

    @property
    def latest(self) -> Reading | None:
        """What was read last."""
        return self.history[-1] if self.history else None

    @property
    def evidence(self) -> Evidence:
        """The rows of all steps, those of an earlier run in the same folder included."""
        return self._store.evidence

    def _open(self) -> None:
        if ranks.is_main():
            _ = self._store, self._writer

    @cached_property
    def _store(self) -> FolderStore | MemoryStore:
        # Made when first needed: before that, a process of many may not know yet that it is not the one to write.
        if self._out is None:
            return MemoryStore()
        if isinstance(self._out, RunFolder):
            return FolderStore(self._out)
        return FolderStore.at(self._out, self._probe.identity)

    @cached_property
    def _writer(self) -> Writer | None:
        return None if self._tensorboard is None else open_writer(self._tensorboard)
