"""Curves for TensorBoard."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from attnaudit.errors import RunFolderError
from attnaudit.extras import optional
from attnaudit.training.readings import Reading, measure_means


class Writer(typing.Protocol):
    """The part of `torch.utils.tensorboard.SummaryWriter` that is used."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        """One point of a curve."""

    def flush(self) -> None:
        """Bring to disk what was added."""


def open_writer(target: str | Path | Writer) -> Writer:
    """The writer given, or one into a folder.

    Raises:
        MissingExtraError: tensorboard is not installed.
        RunFolderError: the folder cannot be written.
    """
    if not isinstance(target, (str, Path)):
        return target
    optional("tensorboard", "tensorboard", "Writing curves for TensorBoard")
    from torch.utils.tensorboard import SummaryWriter

    with _writing():
        writer: Writer = SummaryWriter(str(target))
    return writer


def write_curves(writer: Writer, reading: Reading, table: pa.Table, batches: Sequence[str]) -> None:
    """A point of `batch/measure`, of `batch/measure/layer 3`, and of each score, where there is a number.

    Raises:
        RunFolderError: they cannot be written, for want of space or rights.
    """
    points: dict[str, float | None] = {}
    for batch in batches:
        points |= {f"{batch}/{measure}": value for (measure,), value in measure_means(table, batch).items()}
        by_layer = measure_means(table, batch, "layer")
        points |= {f"{batch}/{measure}/layer {layer}": value for (measure, layer), value in by_layer.items()}
        points[f"{batch}/explained"] = reading.batches[batch].explained
        points |= {f"{batch}/score/{name}": entry.mean for name, entry in reading.batches[batch].scores.items()}
    with _writing():
        for tag, value in points.items():
            if value is not None:
                writer.add_scalar(tag, value, reading.step)
        writer.flush()


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunFolderError(
            f"The curves for TensorBoard cannot be written ({error.strerror}): make room, or do without tensorboard=."
        ) from error
