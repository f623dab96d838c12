"""Time and memory of one pass of a network: as PyTorch runs it, and as the GPU alone would.

Plain PyTorch launches every kernel from Python, and a small network takes as long as its launches. A CUDA graph is
recorded once and launched as a whole, so that its time is that of the GPU.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from torch.profiler import ProfilerActivity, profile

from attnaudit.errors import first_line
from attnaudit.training.cuda_graph import preserved_generators

_WARM_UP = 2
Work = Callable[[], None]


def seconds(work: Work, device: torch.device, repeats: int) -> float:
    """The median; processor time on a CPU, and on a GPU from an idle one to an idle one."""
    cuda = device.type == "cuda"
    wait = torch.cuda.synchronize if cuda else (lambda: None)
    clock = time.perf_counter if cuda else time.process_time
    times = []
    for _ in range(_WARM_UP + repeats):
        wait()
        begin = clock()
        work()
        wait()
        times.append(clock() - begin)
    return statistics.median(times[_WARM_UP:])


def graph_seconds(work: Work, device: torch.device, repeats: int) -> float | str:
    """The same of a CUDA graph of `work`, or why there is none.

    `work` must use the same inputs every time, and drop gradients before it computes new ones, so that the graph owns
    all it writes to. It must have run before: what it sets up once cannot be recorded.
    """
    if device.type != "cuda":
        return f"a {device.type} has no CUDA graphs"
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
        return first_line(error.__context__ or error)  # the end of a broken recording raises an error of its own
    return seconds(graph.replay, device, repeats)


def peak_bytes(work: Work, device: torch.device) -> int:
    """The most that torch held at a time beyond what it held before."""
    if device.type == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        work()
    held = peak = 0
    for event in watched.profiler.kineto_results.events():  # type: ignore[union-attr]
        if event.name() == "[memory]":
            held += event.nbytes()
            peak = max(peak, held)
    return peak
