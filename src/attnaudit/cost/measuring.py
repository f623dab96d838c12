"""A table of what networks cost on a device."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext

import torch
from torch import Tensor, nn

from attnaudit.cost.networks import SIZES, SYMMETRIC, networks
from attnaudit.cost.operations import operations_by_hand, operations_by_torch
from attnaudit.cost.passes import Work, passes, peak_bytes, recorded, seconds_in_turn
from attnaudit.display import counted
from attnaudit.errors import AttnAuditError, NumericalError, UsageError, unknown
from attnaudit.numerics.memory import is_out_of_memory
from attnaudit.numerics.threads import single_threaded
from attnaudit.records.architecture import Architecture
from attnaudit.records.cost import CostTable, NetworkCost, PassCost, PassTimes
from attnaudit.records.engine import Progress
from attnaudit.records.ranges import check_whole
from attnaudit.sources.vision_transformer import build_vision_transformer

_log = logging.getLogger(__name__)
#: Products on a GPU are those of training there.
_PRECISION = {"cuda": "bf16", "cpu": "fp32"}


def check_settings(sizes: Sequence[str], batch: int, repeats: int) -> None:
    """Refuse what cannot be measured, before anything takes time.

    Raises:
        UsageError: a size is unknown, there is none, or a number is too small.
    """
    check_whole(1, batch=batch)
    check_whole(2, repeats=repeats)
    for size in sizes:
        if size not in SIZES:
            raise unknown("size", size, SIZES)
    if not sizes:
        raise UsageError(f"No size is given: name at least one of {', '.join(SIZES)}.")


def measure_costs(
    sizes: Sequence[str], *, batch: int, repeats: int, device: str, progress: Progress, **changes: int
) -> CostTable:
    """Measure every variant of these sizes, which `check_settings` accepts; on a CPU, on one thread.

    Args:
        sizes: names in `SIZES`.
        batch: images of a pass.
        repeats: passes that are timed, each in turn with one of symmetric attention.
        device: `cpu` or `cuda`.
        progress: told of every network.
        changes: numbers of the architecture, such as `depth`.

    Raises:
        NumericalError: the operations counted by hand are not those that torch counts.
        AttnAuditError: the batch does not fit into memory.
    """
    try:
        return _measured(sizes, batch, repeats, device, progress, **changes)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        raise AttnAuditError(
            f"A batch of {counted(batch, 'image')} does not fit into the memory of {device}: give a smaller --batch."
        ) from error


def _measured(
    sizes: Sequence[str], batch: int, repeats: int, device: str, progress: Progress, **changes: int
) -> CostTable:
    begun, place = time.perf_counter(), torch.device(device)
    named = {size: dict(networks(size, **changes)) for size in dict.fromkeys(sizes)}
    total = sum(map(len, named.values()))
    found: dict[tuple[str, str], NetworkCost] = {}
    with single_threaded() if device == "cpu" else nullcontext():
        for size in sorted(named, key=list(SIZES).index, reverse=True):  # the slowest first: no estimate is too low
            measuring = _Measuring(named[size], place, batch, repeats)
            for name, architecture in named[size].items():
                progress(len(found), total, f"{size}, {name}")
                found[size, name] = measuring.cost(size, name, architecture)
                gc.collect()
    progress(total, total, "")
    where = torch.cuda.get_device_name() if device == "cuda" else "one CPU thread"
    taken = time.perf_counter() - begun
    ordered = tuple(found[size, name] for size, variants in named.items() for name in variants)
    return CostTable(where, torch.__version__, _PRECISION[device], batch, taken, ordered)


class _Measuring:
    """Networks of one size, each beside the one of symmetric attention."""

    def __init__(self, variants: Mapping[str, Architecture], device: torch.device, batch: int, repeats: int) -> None:
        self._device, self._repeats = device, repeats
        architecture = variants[SYMMETRIC]
        side = architecture.image_size
        self._images: Tensor = torch.randn(batch, 3, side, side, generator=torch.Generator().manual_seed(0)).to(device)
        self._symmetric = self._passes(self._built(architecture))
        self._replayed: list[Work | str] | None = None

    def cost(self, size: str, name: str, architecture: Architecture) -> NetworkCost:
        """Memory comes before the graphs, which hold some of their own."""
        model = self._built(architecture)
        by_hand, by_torch = operations_by_hand(architecture), operations_by_torch(model, architecture)
        if by_hand != by_torch:
            raise NumericalError(
                f"{size}, {name}: {by_hand} counted by hand, but {by_torch} by torch: one of the counts is wrong."
            )
        works = self._passes(model)
        times = [self._in_turn(*pair) for pair in zip(works, self._symmetric, strict=True)]
        memory = [peak_bytes(work, self._device) for work in works]
        graphs = self._graphs(works, f"{size}, {name}")
        inference, training = (
            PassCost(*numbers)
            for numbers in zip((by_hand.inference, by_hand.training), memory, times, graphs, strict=True)
        )
        parameters = sum(parameter.numel() for parameter in model.parameters())
        return NetworkCost(size, name, architecture, parameters, inference, training)

    def _built(self, architecture: Architecture) -> nn.Module:
        return build_vision_transformer(architecture, 0).to(self._device)

    def _passes(self, model: nn.Module) -> tuple[Work, Work]:
        return passes(model, self._images, _PRECISION[self._device.type])

    def _in_turn(self, own: Work, symmetric: Work) -> PassTimes:
        return PassTimes(*seconds_in_turn([own, symmetric], self._device, self._repeats))

    def _graphs(self, works: Sequence[Work], name: str) -> list[PassTimes | None]:
        """Times of CUDA graphs; None, and a message, for what could not be recorded."""
        if self._device.type != "cuda":
            return [None] * len(works)
        if self._replayed is None:
            self._replayed = [recorded(work) for work in self._symmetric]
        found: list[PassTimes | None] = []
        for own, symmetric in zip(map(recorded, works), self._replayed, strict=True):
            if isinstance(own, str) or isinstance(symmetric, str):
                _log.warning("No CUDA graph of %s: %s", name, own if isinstance(own, str) else symmetric)
                found.append(None)
            else:
                found.append(self._in_turn(own, symmetric))
        return found
