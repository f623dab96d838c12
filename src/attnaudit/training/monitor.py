"""The monitor: how attention changes while a model trains, measured on fixed batches without changing the training."""

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
from attnaudit.records.frames import data_frame
from attnaudit.records.notes import Notes
from attnaudit.records.ranges import check_whole
from attnaudit.records.run_folder import RunFolder
from attnaudit.records.schema import SCHEMA, at_step
from attnaudit.training.curves import CurveSink, TensorBoardCurves, WandbCurves, WandbRun, Writer, curve_points
from attnaudit.training.distributed import Ranks, on_all_ranks
from attnaudit.training.fixed_batches import fixed_batches
from attnaudit.training.integrations import StepCounter, lightning_callback, transformers_callback
from attnaudit.training.monitor_log import FolderStore, MemoryStore, Reading, read, reading_layers
from attnaudit.training.preservation import Mode, unwrapped
from attnaudit.training.probe import MEASURES, Probe

#: Those that need neither another network nor all inputs.
_REFERENCES = tuple(name for name, reference in REFERENCES.items() if not (reference.network or reference.fitted))


class Monitor:
    """Measures ‖φ(q)‖², ‖h‖², J and the alignment with the theory, per layer and head, every few steps of a training.

    The model runs without autocast and compilation, in the type of its parameters and, unless `mode` says otherwise, in
    evaluation mode; the numbers are float64. Afterwards gradients, random states, and the modes, buffers and attributes
    of its modules are what they were before.

    In a distributed training every rank measures its own batches, and the numbers are over the tokens of all ranks.
    Rank 0 writes, reports and keeps the readings, and only its inputs are scored.

    Args:
        model: any torch module, also inside `DistributedDataParallel` or `torch.compile`.
        batches: the inputs of the model, a tensor or a tuple of arguments; or several batches by name, as in
            `{"train": x, "test": {"input_ids": ids}}`. A mapping always means names.
        out: a folder for the evidence, or an open `RunFolder`; None keeps it in memory.
        every: the number of steps between two measurements, or "epoch" with a callback.
        name: the name of the model in the evidence; by default its class.
        scores: the number of inputs of each batch that are compared with their references.
        references: the references; see `attnaudit ls references`.
        legacy: whether to add the formula of Teo & Nguyen's code, for comparison with their curves.
        tensorboard: a folder, or a `SummaryWriter`, for curves in TensorBoard.
        wandb: a run of Weights & Biases (`wandb.run`), or the name of a project for a new one.
        tell: called with one line per measurement; by default the logger `attnaudit.training` gets it.
        seed: of the references, and of random choices of a forward pass in mode "train".
        mode: "eval", or "train" to measure with drop path and dropout, as the study does for its training batch; one
            for all batches, or a mapping from their names.
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
        wandb: str | WandbRun | None = None,
        tell: Callable[[str], object] | None = None,
        seed: int = 0,
        mode: Mode | Mapping[str, Mode] = "eval",
    ) -> None:
        if every != "epoch" and (not isinstance(every, int) or isinstance(every, bool) or every < 1):
            raise UsageError(f'every must be a number of steps ≥ 1 or "epoch", got {every!r}.')
        check_whole(0, scores=scores)
        selection = select(measures=MEASURES, references=references, seed=seed)
        for reference in selection.references:
            if reference.network:
                raise UsageError(f"A monitor cannot use the reference {reference.name!r}: compare with step 0 instead.")
            if reference.fitted:
                raise UsageError(f"A monitor cannot use the reference {reference.name!r}: audit the network instead.")
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
        self._tensorboard, self._wandb = tensorboard, wandb
        self._tell = tell or logging.getLogger(__package__).info
        self._refused: set[tuple[str, str]] = set()
        self._counter: StepCounter | None = None
        self._measured: int | None = None
        #: The readings so far, in the order of measurement.
        self.history: list[Reading] = []

    def attach(self, optimizer: Optimizer, *, step: int = 0) -> Self:
        """Measure now, at `step`, if it is due, and then after every `every`-th step of the optimiser."""
        if self._every == "epoch":
            raise UsageError(
                'attach needs a number of steps, got every="epoch", which an optimiser cannot count: use a callback or '
                "monitor.measure(step)."
            )
        check_whole(0, step=step)
        self._stop_counting()
        self._counter = StepCounter(optimizer, self._due, self.after_step, step)
        self.begin(step)
        return self

    def detach(self) -> None:
        """Remove the monitor from the optimiser, let other processes write into its folder, and end its curves.

        The callbacks do so at the end of a training. A later measurement continues the folder with new curves.
        """
        self._stop_counting()
        if isinstance(store := vars(self).get("_store"), FolderStore):
            store.unlock()
        for curves in vars(self).pop("_curves", ()):
            curves.close()

    def _stop_counting(self) -> None:
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
        return transformers_callback(self)

    def begin(self, step: int) -> None:
        """Training starts, or is resumed, at a step: measure if it is due; step 0 always is."""
        if step == 0 or self._due(step):
            self.measure(step)

    def after_step(self, step: int) -> None:
        """A step was taken: measure if it is due and not yet measured."""
        if self._due(step) and step != self._measured:
            self.measure(step)

    def after_epoch(self, step: int) -> None:
        """An epoch ended: measure if epochs are measured."""
        if self._every == "epoch" and step != self._measured:
            self.measure(step)

    def _due(self, step: int) -> bool:
        return self._every != "epoch" and step % self._every == 0

    def measure(self, step: int) -> pa.Table:
        """Measure now, due or not, and return the rows: all on rank 0, none elsewhere. All ranks must call this.

        Raises:
            CaptureError: no layer of the model can be captured.
            InputError: the model cannot be called with a batch.
            RunFolderError: `out` cannot be written, or holds something else.
            SettingError: the step is no whole number ≥ 0.
        """
        check_whole(0, step=step)
        on_all_ranks(self._open)  # first, so that an unusable folder is an error on all ranks before the work
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
        reading = read(step, table, names, self._probe.label)
        self.history.append(reading)
        if self._curves:
            points = curve_points(reading, table, names)
            for curves in self._curves:
                curves.add(step, points)
        self._tell(reading.line)

    @property
    def latest(self) -> Reading | None:
        """The last reading."""
        return self.history[-1] if self.history else None

    @property
    def rows(self) -> Evidence:
        """The rows of all steps, including those of an earlier run in the same folder, to be questioned."""
        return self._store.rows

    @property
    def evidence(self) -> pa.Table:
        """The same as a pyarrow table, with the columns of an audit's evidence."""
        return self.rows.table()

    def frame(self) -> Any:
        """The same as a data frame of pandas or polars, whichever is installed.

        Raises:
            MissingExtraError: neither is.
        """
        return data_frame(self.evidence)

    def layers(self) -> pa.Table:
        """A row per batch, theory and layer at the last reading: means of every measure over heads, and scores.

        Raises:
            UsageError: nothing was measured yet.
        """
        if self.latest is None:
            raise UsageError("Nothing was measured yet: attach the monitor, or call monitor.measure(step).")
        rows = self._store.rows_at(self.latest.step).table()
        return reading_layers(self.latest, rows)

    def _open(self) -> None:
        if Ranks.current().is_main:
            _ = self._store, self._curves

    @cached_property
    def _store(self) -> FolderStore | MemoryStore:
        # Opened when first needed: earlier a process may not know its rank, and whether it is the one to write.
        if self._out is None:
            return MemoryStore()
        if isinstance(self._out, RunFolder):
            return FolderStore(self._out)
        return FolderStore.at(self._out, self._probe.identity)

    @cached_property
    def _curves(self) -> tuple[CurveSink, ...]:
        opened: list[CurveSink] = []
        if self._tensorboard is not None:
            opened.append(TensorBoardCurves(self._tensorboard))
        if self._wandb is not None:
            opened.append(WandbCurves(self._wandb))
        return tuple(opened)
