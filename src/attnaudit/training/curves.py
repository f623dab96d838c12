"""The readings of a monitor as curves in TensorBoard and Weights & Biases."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from attnaudit.errors import RunFolderError, UsageError, first_line
from attnaudit.extras import optional
from attnaudit.training.monitor_log import Reading, measure_means

#: What the curves in Weights & Biases are filed under.
_GROUP = "attnaudit"


def curve_points(reading: Reading, table: pa.Table, batches: Sequence[str]) -> dict[str, float]:
    """The points of a step: `batch/measure`, `batch/measure/layer 3` and each score, where there is a number."""
    points: dict[str, float | None] = {}
    for batch in batches:
        points |= {f"{batch}/{measure}": value for (measure,), value in measure_means(table, batch).items()}
        by_layer = measure_means(table, batch, "layer")
        points |= {f"{batch}/{measure}/layer {layer}": value for (measure, layer), value in by_layer.items()}
        points[f"{batch}/explained"] = reading.batches[batch].explained
        scores = reading.batches[batch].scores
        points |= {f"{batch}/score/{name}": own.score.mean for name, own in scores.items() if own.score is not None}
    return {tag: value for tag, value in points.items() if value is not None}


class CurveSink(typing.Protocol):
    """Where points go."""

    def add(self, step: int, points: Mapping[str, float]) -> None:
        """Add a point to each of these curves."""

    def close(self) -> None:
        """The training ended: end what was begun for it, and nothing that the caller passed."""


class Writer(typing.Protocol):
    """The part of `torch.utils.tensorboard.SummaryWriter` that is used."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        """One point of a curve."""

    def flush(self) -> None:
        """Write to disk what was added."""

    def close(self) -> None:
        """Add no more."""


class TensorBoardCurves:
    """Curves of a `SummaryWriter`, or of a new one for a folder.

    Raises:
        MissingExtraError: tensorboard is not installed.
        RunFolderError: the folder cannot be written.
    """

    def __init__(self, target: str | Path | Writer) -> None:
        self._own = isinstance(target, (str, Path))
        if not isinstance(target, (str, Path)):
            self._writer = target
            return
        optional("tensorboard", "tensorboard", "Writing curves for TensorBoard")
        from torch.utils.tensorboard import SummaryWriter

        with _write_errors():
            self._writer = SummaryWriter(str(target))

    def add(self, step: int, points: Mapping[str, float]) -> None:
        """Write the points, and have them written to disk.

        Raises:
            RunFolderError: they cannot be written.
        """
        with _write_errors():
            for tag, value in points.items():
                self._writer.add_scalar(tag, value, step)
            self._writer.flush()

    def close(self) -> None:
        """Close a writer of its own."""
        if self._own:
            self._writer.close()


@contextmanager
def _write_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunFolderError(
            f"The curves for TensorBoard cannot be written ({error.strerror}): free some space, or leave out "
            "tensorboard."
        ) from error


class WandbRun(typing.Protocol):
    """The part of `wandb.Run` that is used."""

    def define_metric(self, name: str, *, step_metric: str | None = None) -> Any:
        """Say what a curve is drawn over."""

    def log(self, data: dict[str, Any]) -> None:
        """One point of several curves."""

    def finish(self) -> None:
        """End the run."""


class WandbCurves:
    """Curves of a run of Weights & Biases, or of a new run in a project.

    The step is a curve of its own, over which the others are drawn. So it does not matter how the program itself counts
    its steps there.

    Raises:
        MissingExtraError: wandb is not installed.
        UsageError: a run cannot be started.
    """

    def __init__(self, target: str | WandbRun) -> None:
        self._own = isinstance(target, str)
        self._run = _new_run(target) if isinstance(target, str) else target
        self._run.define_metric(f"{_GROUP}/step")
        self._run.define_metric(f"{_GROUP}/*", step_metric=f"{_GROUP}/step")

    def add(self, step: int, points: Mapping[str, float]) -> None:
        """Log the points."""
        self._run.log({f"{_GROUP}/step": step, **{f"{_GROUP}/{tag}": value for tag, value in points.items()}})

    def close(self) -> None:
        """Finish a run of its own."""
        if self._own:
            self._run.finish()


def _new_run(project: str) -> WandbRun:
    wandb = optional("wandb", "wandb", "Logging curves to Weights & Biases")
    try:
        # By default an open run of the program would be returned, or this one to a program that begins its own later.
        run: WandbRun = wandb.init(project=project, reinit="create_new")
    except Exception as error:  # its errors depend on its version
        raise UsageError(
            f"Weights & Biases cannot start a run ({first_line(error)}): log in with wandb login, or set "
            "WANDB_MODE=offline."
        ) from error
    return run
