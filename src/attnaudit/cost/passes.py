"""Time and memory of a pass of a network: as PyTorch runs it, and as the GPU alone would.

Plain PyTorch launches every kernel from Python, and a small network takes as long as its launches. A CUDA graph is
recorded once and launched as a whole, so that its time is that of the GPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from attnaudit.errors import first_line
from attnaudit.numerics.precision import autocast
from attnaudit.numerics.randomness import preserved_generators

_WARM_UP = 2
Work = Callable[[], None]


def passes(model: nn.Module, images: Tensor, precision: str) -> tuple[Work, Work]:
    """Inference, and forward with backward; the optimiser's step, which is the same for all, is left out."""

    @torch.no_grad()
    def inference() -> None:
        with autocast(images.device, precision):
            model.eval()(images)

    def training() -> None:
        model.zero_grad(set_to_none=True)
        with autocast(images.device, precision):
            loss = model.train()(images).float().sum()
        loss.backward()
        model.zero_grad(set_to_none=True)

    return inference, training


def seconds_in_turn(works: Sequence[Work], device: torch.device, repeats: int) -> list[tuple[float, ...]]:
    """The times of each, of which one run follows the other, so that a slower machine slows all of them.

    It is processor time on a CPU, and on a GPU wall time from an idle one to an idle one.
    """
    cuda = device.type == "cuda"
    wait: Work = torch.cuda.synchronize if cuda else (lambda: None)
    clock = time.perf_counter if cuda else time.process_time
    times: list[list[float]] = [[] for _ in works]
    for _ in range(_WARM_UP + repeats):
        for work, own in zip(works, times, strict=True):
            wait()
            begin = clock()
            work()
            wait()
            own.append(clock() - begin)
    return [tuple(own[_WARM_UP:]) for own in times]


def recorded(work: Work) -> Work | str:
    """A replay of the CUDA graph of `work`, or why there is none.

    `work` must use the same inputs every time, and drop gradients before it computes new ones, so that the graph owns
    all it writes to. It must have run before: what it sets up once cannot be recorded.
    """
    side, own = torch.cuda.Stream(), torch.cuda.current_stream()  # type: ignore[no-untyped-call]
    side.wait_stream(own)
    with torch.cuda.stream(side):
        work()  # libraries keep some of their memory by stream
    own.wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.stream(own), preserved_generators(), torch.cuda.graph(graph, stream=side):
            work()
    except RuntimeError as error:
        first = error.__context__  # the end of a broken recording raises an error of its own
        return first_line(first if isinstance(first, Exception) else error)
    replay: Work = graph.replay
    return replay


def peak_bytes(work: Work, device: torch.device) -> int:
    """The most that torch held at a time beyond what it held before.

    A first pass is not measured: it gives up what the last pass of another kind left in the model (Primal-Attention
    keeps its objective, with the graph of a training), which would count as memory won. On a CPU it runs under the
    profiler, too, which knows the size of what it saw allocated, and not always that of other memory.
    """
    if device.type == "cuda":
        work()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before
    for _ in range(2):
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
            work()
    held = peak = 0
    for event in watched.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            peak = max(peak, held)
    return peak
