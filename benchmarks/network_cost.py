"""What attention variants cost in whole networks: parameters, operations, time and memory, in training and inference.

    python -m benchmarks.network_cost [--device cpu|cuda] [--sizes tiny,small,base] [--batch 8] [--repeats 5]

Vision transformers of DeiT's sizes (12 blocks, 224 pixels, patches of 16) with every variant in all blocks, and
RPC-Attention in the first of a symmetric network too, as the paper has it. Operations are counted by hand
(`network_flops.py`) and by `torch.utils.flop_counter`, which must agree. Time is the median of passes over a batch
(cuda: bfloat16; cpu: float32, one thread, processor time); memory is the most that torch held beyond the network
itself. Training is forward and backward; the optimiser's step is the same for all.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable, Iterator

import torch
from benchmarks.network_flops import Flops, network_flops
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from attnaudit.display import counted
from attnaudit.numerics.precision import autocast
from attnaudit.records.architecture import Architecture
from attnaudit.sources.vision_transformer import build_vision_transformer

#: Width and heads of DeiT.
SIZES = {"tiny": (192, 3), "small": (384, 6), "base": (768, 12)}
ITERATIONS = range(1, 7)
_WARM_UP = 2


def networks(size: str, **changes: int) -> Iterator[tuple[str, Architecture]]:
    """Every variant by name."""
    width, heads = SIZES[size]
    shape = {"image_size": 224, "patch_size": 16, "width": width, "heads": heads, "depth": 12, "classes": 1000}
    shape |= changes

    def built(attention: str, **more: object) -> Architecture:
        return Architecture(attention=attention, **shape, **more)  # type: ignore[arg-type]

    yield "softmax", built("softmax")
    yield "symmetric", built("symmetric")
    yield "scaled, α", built("scaled", attention_options={"form": "alpha"})
    yield "scaled, learned S", built("scaled", attention_options={"form": "learned"})
    yield "scaled, exact S", built("scaled", attention_options={"form": "exact"})
    for count in ITERATIONS:
        options = {"iterations": count}
        first = {"attention_layers": (0,), "other_attention": "symmetric"}
        yield f"rpc, {counted(count, 'iteration')}, first block", built("rpc", attention_options=options, **first)
    for count in ITERATIONS:
        yield f"rpc, {counted(count, 'iteration')}, all blocks", built("rpc", attention_options={"iterations": count})
    yield "primal, rank 20", built("primal")


def counted_flops(model: nn.Module, architecture: Architecture) -> Flops:
    """One image through `torch.utils.flop_counter`, with attention that keeps its scores."""
    image = torch.zeros(1, 3, architecture.image_size, architecture.image_size, device=next(model.parameters()).device)
    with sdpa_kernel(SDPBackend.MATH):
        with FlopCounterMode(display=False) as forward, torch.no_grad():
            model(image)
        with FlopCounterMode(display=False) as both:
            model(image).sum().backward()
    return Flops(forward.get_total_flops(), both.get_total_flops())


def measured(work: Callable[[], None], device: torch.device, repeats: int) -> tuple[float, int]:
    """Median seconds, and the most bytes held beyond what was held before."""
    cuda = device.type == "cuda"
    wait = torch.cuda.synchronize if cuda else (lambda: None)
    clock = time.perf_counter if cuda else time.process_time
    times = []
    for turn in range(_WARM_UP + repeats):
        wait()
        begin = clock()
        work()
        wait()
        if turn >= _WARM_UP:
            times.append(clock() - begin)
    if cuda:
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        wait()
        return statistics.median(times), torch.cuda.max_memory_allocated() - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        work()
    held = peak = 0
    for event in watched.profiler.kineto_results.events():  # type: ignore[union-attr]
        if event.name() == "[memory]":
            held += event.nbytes()
            peak = max(peak, held)
    return statistics.median(times), peak


def passes(model: nn.Module, images: Tensor, precision: str) -> tuple[Callable[[], None], Callable[[], None]]:
    """Inference, and forward with backward."""

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


def main(arguments: argparse.Namespace) -> None:
    device = torch.device(arguments.device)
    cuda = device.type == "cuda"
    precision = "bf16" if cuda else "fp32"
    place = torch.cuda.get_device_name() if cuda else "CPU, one thread, processor time"
    print(f"{place}, torch {torch.__version__}, {precision}, batch {arguments.batch}, median of {arguments.repeats}\n")
    print("| size | attention | M parameters | GFLOP per image, inference | training | inference, ms | training, ms "
          "| inference, MiB | training, MiB |\n|" + " --- |" * 9)  # fmt: skip
    begin, wrong = time.perf_counter(), 0
    for size in arguments.sizes.split(","):
        first: tuple[float, ...] | None = None
        for name, architecture in networks(size):
            model = build_vision_transformer(architecture, 0).to(device)
            millions = sum(p.numel() for p in model.parameters()) / 1e6
            images = torch.randn(arguments.batch, 3, 224, 224, device=device)
            found = [measured(work, device, arguments.repeats) for work in passes(model, images, precision)]
            flops = network_flops(architecture)
            same = counted_flops(model, architecture) == flops
            wrong += not same
            numbers = (flops.inference / 1e9, flops.training / 1e9, *(1e3 * t for t, _ in found),
                       *(m / 2**20 for _, m in found))  # fmt: skip
            first = first or numbers
            cells = [f"{own:,.2f} (×{own / base:.2f})" for own, base in zip(numbers, first, strict=True)]
            print(f"| {size} | {name} | {millions:.2f} | {' | '.join(cells)} |{'' if same else ' count differs'}",
                  flush=True)  # fmt: skip
            del model, images
            gc.collect()
    print(f"\nIn brackets: over softmax attention of the same size. Took {time.perf_counter() - begin:.0f} s.")
    print("The count by hand and torch's agree in every row." if not wrong else f"The counts differ in {wrong} rows.")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    if options.device == "cpu":
        torch.set_num_threads(1)
    main(options)
