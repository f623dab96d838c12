"""What attention variants cost in whole networks: parameters, operations, time and memory, in training and inference.

    python -m benchmarks.network_cost [--device cpu|cuda] [--sizes tiny,base] [--batch 8] [--repeats 5] [--out DIR]

Vision transformers of DeiT's sizes (12 blocks, 224 pixels, patches of 16) with every variant in all blocks, and
RPC-Attention in the first of a symmetric network too, as the paper has it. Operations are counted by hand
(`network_flops.py`) and by `torch.utils.flop_counter`, which must agree. Time is the median of passes over a batch
(cuda: bfloat16; cpu: float32, one thread, processor time); memory is the most that torch held beyond the network
itself. On a GPU there are two times: of plain PyTorch, which launches every kernel from Python, and of a CUDA graph of
the same pass, which is the time of the GPU. Training is forward and backward; the optimiser's step is the same for all.
With `--out`, the numbers go into cost.csv, and a figure of them into cost.svg.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from benchmarks.cost_figure import Row, write_cost
from benchmarks.network_flops import Flops, network_flops
from benchmarks.pass_cost import Work, graph_seconds, peak_bytes, seconds
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from attnaudit.display import counted
from attnaudit.numerics.precision import autocast
from attnaudit.records.architecture import Architecture
from attnaudit.sources.vision_transformer import build_vision_transformer

#: Width and heads of DeiT.
SIZES = {"tiny": (192, 3), "small": (384, 6), "base": (768, 12)}
ITERATIONS = range(1, 7)


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
    model.zero_grad(set_to_none=True)
    return Flops(forward.get_total_flops(), both.get_total_flops())


def passes(model: nn.Module, images: Tensor, precision: str) -> tuple[Work, Work]:
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


def columns(cuda: bool) -> list[str]:
    """The names of the numbers; on a GPU, times are those of plain PyTorch and of CUDA graphs."""
    quantities = [("", "GFLOP"), ("", "ms"), *([("graph: ", "ms")] if cuda else []), ("", "MiB")]
    return [f"{way}{work}, {unit}" for way, unit in quantities for work in ("inference", "training")]


def table_head(cuda: bool) -> str:
    """The first two lines of the table; operations are those of one image."""
    names = ["size", "attention", "M parameters", *columns(cuda)]
    return f"| {' | '.join(names)} |\n|{' --- |' * len(names)}"


def cell(own: float | str, base: float | str) -> str:
    """A number, and how many times that of softmax attention it is; a dash where there is a reason instead."""
    if isinstance(own, str):
        return "–"
    return f"{own:,.2f}" + ("" if isinstance(base, str) else f" (×{own / base:.2f})")


def measured(model: nn.Module, images: Tensor, precision: str, repeats: int) -> list[float | str]:
    """Milliseconds of inference and training, on a GPU of CUDA graphs of them too, and MiB of both.

    Memory comes before the graphs, which hold some of their own.
    """
    device, works = images.device, passes(model, images, precision)
    found: list[float | str] = [1e3 * seconds(work, device, repeats) for work in works]
    memory = [peak_bytes(work, device) / 2**20 for work in works]
    if device.type == "cuda":
        graphs = [graph_seconds(work, device, repeats) for work in works]
        found += [own if isinstance(own, str) else 1e3 * own for own in graphs]
    return found + memory


def main(arguments: argparse.Namespace) -> None:
    device = torch.device(arguments.device)
    cuda = device.type == "cuda"
    precision = "bf16" if cuda else "fp32"
    place = torch.cuda.get_device_name() if cuda else "CPU, one thread, processor time"
    print(f"{place}, torch {torch.__version__}, {precision}, batch {arguments.batch}, median of {arguments.repeats}\n")
    print(table_head(cuda))
    begin, wrong, reasons = time.perf_counter(), 0, []
    rows: list[Row] = []
    for size in arguments.sizes.split(","):
        first: list[float | str] | None = None
        for name, architecture in networks(size):
            model = build_vision_transformer(architecture, 0).to(device)
            millions = sum(p.numel() for p in model.parameters()) / 1e6
            images = torch.randn(arguments.batch, 3, 224, 224).to(device)
            flops = network_flops(architecture)
            same = counted_flops(model, architecture) == flops
            wrong += not same
            numbers = [flops.inference / 1e9, flops.training / 1e9,
                       *measured(model, images, precision, arguments.repeats)]  # fmt: skip
            first = first or numbers
            known = (None if isinstance(own, str) else own for own in numbers)
            rows.append({"size": size, "attention": name, "M parameters": millions}
                        | dict(zip(columns(cuda), known, strict=True)))  # fmt: skip
            reasons += [f"{size}, {name}: {own}" for own in numbers if isinstance(own, str)]
            cells = " | ".join(map(cell, numbers, first))
            print(f"| {size} | {name} | {millions:.2f} | {cells} |{'' if same else ' count differs'}", flush=True)
            del model, images
            gc.collect()
    print(f"\nIn brackets: over softmax attention of the same size. Took {time.perf_counter() - begin:.0f} s.")
    if arguments.out:
        write_cost(rows, arguments.out)
    for reason in reasons:
        print(f"No CUDA graph of {reason}")
    print("The count by hand and torch's agree in every row." if not wrong else f"The counts differ in {wrong} rows.")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, help="folder for cost.csv and cost.svg")
    options = parser.parse_args()
    if options.device == "cpu":
        torch.set_num_threads(1)
    main(options)
