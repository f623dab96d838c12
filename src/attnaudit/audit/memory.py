"""Whether inputs and heads fit into the memory that a process may take."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from attnaudit.capture.heads import Heads
from attnaudit.errors import UsageError
from attnaudit.measures.batches import batch_size, matrix_bytes
from attnaudit.records.engine import PROCESS_BYTES, format_size

#: How many matrices of tokens x tokens a batch needs at its peak (measured: 17, all measures and references).
_MATRICES = 20


def room_for_inputs(module: nn.Module, memory: int) -> int:
    """What the process and the model leave for the preparation of inputs."""
    return memory - PROCESS_BYTES - _model_bytes(module)


def check_fits(layers: Sequence[Heads], module: nn.Module, memory: int) -> None:
    """Refuse, before anything is measured, heads that take more than the setting allows.

    Counted are the process, the model, all captured layers, and what measuring the largest batch needs.
    """
    if not layers:  # nothing but Primal-Attention, which builds no matrix of tokens x tokens
        return
    held = PROCESS_BYTES + _model_bytes(module) + sum(_bytes(heads) for heads in layers)
    dearest = max(layers, key=_batch_bytes)
    needed = held + _batch_bytes(dearest)
    if needed > memory:
        raise UsageError(
            f"Measuring heads of {dearest.tokens:,} tokens takes about {format_size(needed)} here, more than the "
            f"{format_size(memory)} that --memory leaves each process: allow more, use fewer --workers, or shorter "
            "inputs."
        )


def _batch_bytes(heads: Heads) -> int:
    return _MATRICES * matrix_bytes(heads) * batch_size(heads)


def _model_bytes(module: nn.Module) -> int:
    return sum(tensor.nbytes for tensor in module.state_dict().values())


def _bytes(heads: Heads) -> int:
    return sum(value.nbytes for value in vars(heads).values() if isinstance(value, Tensor))
