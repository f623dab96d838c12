"""How the time per head and the memory of the default audit grow with inputs, heads and tokens.

    python -m benchmarks.audit_growth [--device cpu|cuda] [--inputs 1000] [--tokens 4096] [--seconds 240] --out FOLDER

* Inputs: 10 to `--inputs` images on disk, `test_vit` with random weights (12 heads of 101 tokens).
* Heads: models with 3 to 16 heads in each layer (12 layers on a GPU, one on a CPU), 197 tokens, two images of noise.
* Tokens: one layer of DeiT-Tiny (random weights; positions made for each size by timm) on two images of noise, from
  224 x 224, 197 tokens, to 720 x 1456, 4,096 tokens: above that, measures over all pairs of tokens are missing.

Each point is a whole default audit in this process; what is timed is its engine, by the clock of `attnaudit bench`.
Models in memory have no untrained twin. Memory is the peak of the process while it runs, and on a GPU also that of
torch's allocations there. A point that would probably end after `--seconds` is left out, and said so. FOLDER gets
`audit_growth.svg` and `audit_growth.csv`.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from functools import partial
from pathlib import Path

import numpy as np
import timm
import torch
from matplotlib.ticker import NullFormatter, NullLocator
from PIL import Image

import attnaudit
from attnaudit.api.benchmark import with_engine_seconds
from attnaudit.numerics.threads import single_threaded
from attnaudit.report.drawing import BLUE, VERMILION, drawing

MODEL, SMALL = "deit_tiny_patch16_224", "test_vit"
DIM, HEADS = 64, (3, 6, 12, 16)
#: Of the models with more and more heads: a GPU needs many to be busy.
LAYERS = {"cpu": 1, "cuda": 12}
PATCH = 16
#: Height and width of images; the last one has 4,096 tokens, the most for which every measure is computed.
SIZES = ((224, 224), (384, 384), (512, 512), (720, 720), (720, 1456))
INPUTS = (10, 30, 100, 300, 1000)
#: How the time of a point is guessed from the one before: time ~ number ** power.
POWERS = {"inputs": 1.0, "heads": 1.2, "tokens": 3.0}


@dataclass(frozen=True)
class Point:
    """One audit: against what, how much of it, and what it took."""

    against: str
    number: int
    heads: int
    milliseconds_per_head: float
    host_mib: float
    device_mib: float

    def __str__(self) -> str:
        memory = f"{self.host_mib:,.0f} MiB" + (f", GPU {self.device_mib:,.0f} MiB" if self.device_mib else "")
        time = f"{self.heads:>6,} heads, {self.milliseconds_per_head:9.2f} ms per head"
        return f"{self.number:>6,} {self.against}: {time}, {memory}"


def audit_of_files(count: int, device: str) -> attnaudit.Run:
    """Of images on disk, which are read unit by unit."""
    with tempfile.TemporaryDirectory() as folder:
        generator = np.random.default_rng(0)
        for number in range(count):
            pixels = generator.integers(0, 256, (32, 32, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(Path(folder) / f"{number:04}.png")
        run = Path(folder) / "run"
        return attnaudit.audit(
            SMALL, folder, random_weights=True, limit=count, device=device, workers=1, out=run, progress=False
        )


def audit_of_noise(layers: int, heads: int, size: tuple[int, int], device: str) -> attnaudit.Run:
    """Of a model in memory, on two images of noise."""
    torch.manual_seed(0)
    model = timm.create_model(MODEL, img_size=size, embed_dim=DIM * heads, num_heads=heads, depth=layers).eval()
    noise = torch.randn(2, 3, *size, generator=torch.Generator().manual_seed(0))
    with tempfile.TemporaryDirectory() as folder:
        return attnaudit.audit(model.to(device), noise, device=device, out=Path(folder) / "run", progress=False)


def points(most_inputs: int, most_tokens: int, device: str) -> Iterator[tuple[str, int, Callable[[], attnaudit.Run]]]:
    """What is audited, in this order: memory that was taken before must not hide what inputs take."""
    for count in (number for number in INPUTS if number <= most_inputs):
        yield "inputs", count, partial(audit_of_files, count, device)
    for heads in HEADS:
        yield "heads", heads, partial(audit_of_noise, LAYERS[device], heads, SIZES[0], device)
    for size in SIZES:
        tokens = size[0] // PATCH * (size[1] // PATCH) + 1
        if tokens <= most_tokens:
            yield "tokens", tokens, partial(audit_of_noise, 1, HEADS[0], size, device)


def measured(against: str, number: int, work: Callable[[], attnaudit.Run], device: str) -> Point:
    """Run one audit."""
    forget_peaks(device)
    run, seconds = with_engine_seconds(work, device)
    heads = run.summary.observed(run.models[0])["procrustes"].n
    on_gpu = torch.cuda.max_memory_allocated() / 2**20 if device == "cuda" else 0.0
    return Point(against, number, heads, seconds / heads * 1e3, host_peak(), on_gpu)


def forget_peaks(device: str) -> None:
    """Let the peaks of memory start anew (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def host_peak() -> float:
    """MiB that this process had at most since then."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def draw(found: list[Point], out: Path, device: str) -> None:
    """Time per head above, peak memory below, against inputs, heads and tokens."""
    where = torch.cuda.get_device_name() if device == "cuda" else "CPU, one thread, processor time"
    titles = {"inputs": "inputs (12 heads of 101 tokens)", "heads": "heads per layer", "tokens": "tokens"}
    with drawing([out / "audit_growth.svg"], 2, 3, (7, 4)) as axes:
        for column, (against, title) in enumerate(titles.items()):
            chosen = [point for point in found if point.against == against]
            numbers = [point.number for point in chosen]
            upper, lower = axes[0, column], axes[1, column]
            upper.loglog(numbers, [point.milliseconds_per_head for point in chosen], "o-", color=BLUE, ms=3)
            lower.loglog(numbers, [point.host_mib for point in chosen], "o-", color=BLUE, ms=3, label="process")
            if device == "cuda":
                lower.loglog(numbers, [point.device_mib for point in chosen], "s--", color=VERMILION, ms=3, label="GPU")
            lower.set_xlabel(title)
            for axis in (upper, lower):
                axis.set_xticks(numbers, [f"{number:,}" for number in numbers], rotation=45)
                axis.xaxis.set_minor_locator(NullLocator())
                axis.yaxis.set_minor_formatter(NullFormatter())
            upper.set_ylim(*around([point.milliseconds_per_head for point in found]))
            lower.set_ylim(*around([size for point in found for size in (point.host_mib, point.device_mib) if size]))
            if against == "heads":
                upper.set_title(f"Default audit, {where}")
        axes[0, 0].set_ylabel("ms per head")
        axes[1, 0].set_ylabel("peak memory, MiB")
        if device == "cuda":
            axes[1, 0].legend()


def around(numbers: Sequence[float]) -> tuple[float, float]:
    """Powers of ten below and above."""
    return 10.0 ** np.floor(np.log10(min(numbers))), 10.0 ** np.ceil(np.log10(max(numbers)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--inputs", type=int, default=INPUTS[-1], help="at most")
    parser.add_argument("--tokens", type=int, default=4096, help="at most")
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    begun, found, last = time.perf_counter(), list[Point](), dict[str, tuple[int, float]]()
    with single_threaded():
        audit_of_noise(1, HEADS[0], SIZES[0], options.device)  # wakes libraries and device
        for against, number, work in points(options.inputs, options.tokens, options.device):
            before, spent = last.get(against, (number, 0.0))
            left = options.seconds - (time.perf_counter() - begun)
            if spent * (number / before) ** POWERS[against] > left:
                print(f"{number:>6,} {against}: left out, {left:.0f} s are left", flush=True)
                continue
            start = time.perf_counter()
            found.append(measured(against, number, work, options.device))
            last[against] = number, time.perf_counter() - start
            print(found[-1], flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "audit_growth.csv").open("w", newline="") as file:
        csv.writer(file).writerows([[field.name for field in fields(Point)], *map(astuple, found)])
    draw(found, options.out, options.device)
    print(f"{time.perf_counter() - begun:.0f} s in all")


if __name__ == "__main__":
    main()
