"""The default audit on a GPU, from the shell to the page, and how busy it keeps the GPU.

    python -m benchmarks.gpu_audit --weights FILE --images FOLDER [--parts shell many stages busy agreement]

* `shell`: `attnaudit audit deit_tiny_patch16_224 --device cuda --limit 100`, twice in new processes. The second one
  finds files and compiled kernels where the first one left them: a warm machine.
* `many`: the same with 1,000 images.
* `stages`: `attnaudit bench` on 100 images: time per head in the engine, by stage, beside the floor.
* `busy`: the share of the engine's time in which a kernel ran on the GPU: the union of all kernels that torch's
  profiler saw, which no overlap counts twice, over wall time with the profiler on.
* `agreement`: every measure of the same two images on CPU and GPU, the differences of its numbers.

Everything is offline. A folder with fewer images than a part needs is filled up by variants of them, mirrored and
made darker or lighter, under other names.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageOps
from rich.console import Console
from torch.profiler import ProfilerActivity, profile

import attnaudit
from attnaudit.api.benchmark import bench, with_engine_seconds
from attnaudit.report.stages import stages_report
from attnaudit.sources.images import find_images

MODEL = "deit_tiny_patch16_224"
PARTS = ("shell", "many", "stages", "busy", "agreement")
HEADS = 36


@dataclass(frozen=True)
class Setting:
    """Weights, a folder with enough images, and where runs go."""

    weights: Path
    images: Path
    runs: Path

    def from_shell(self, name: str, limit: int) -> float:
        """Seconds of the whole command."""
        paths = ["--weights", str(self.weights), "--images", str(self.images), "--out", str(self.runs / name)]
        command = [sys.executable, "-m", "attnaudit", "audit", MODEL, "--device", "cuda", "--limit", str(limit), *paths]
        begun = time.perf_counter()
        done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} failed: {done.stderr[-2000:]}")
        return time.perf_counter() - begun

    def audit(self, name: str, limit: int, device: str) -> attnaudit.Run:
        """In this process."""
        more = {"weights": self.weights, "limit": limit, "device": device, "out": self.runs / name}
        return attnaudit.audit(MODEL, self.images, progress=False, workers=1, **more)


def shell(setting: Setting) -> None:
    for name in ("first", "second"):
        spent = setting.from_shell(f"shell-{name}", 100)
        print(f"100 images from shell to page, {name} run: {spent:.1f} s")


def many(setting: Setting) -> None:
    spent = setting.from_shell("many", 1000)
    print(f"1,000 images from shell to page: {spent:.1f} s, {spent / (1000 * HEADS) * 1e3:.2f} ms per head")


def stages(setting: Setting) -> None:
    found = bench(MODEL, setting.images, weights=setting.weights, limit=100, device="cuda")
    print(f"engine: {found.total / found.heads * 1e3:.3f} ms per head, {found.total / found.least:.2f} times the floor")
    Console(width=100, highlight=False).print(stages_report(found))


def busy(setting: Setting) -> None:
    setting.audit("busy-warm", 50, "cuda")
    _, plain = with_engine_seconds(lambda: setting.audit("busy-plain", 50, "cuda"), "cuda")
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        _, seconds = with_engine_seconds(lambda: setting.audit("busy", 50, "cuda"), "cuda")
    kernels = kernel_intervals(profiler)
    share = union(kernels) / seconds
    print(f"GPU busy {share:.0%} of the engine's {seconds:.2f} s ({plain:.2f} s without the profiler)")
    total = sum(stop - start for start, stop in kernels)
    print(f"{len(kernels):,} kernels and copies, {total:.2f} s in all, {union(kernels):.2f} s without overlaps")


def kernel_intervals(profiler: profile) -> list[tuple[float, float]]:
    """Begin and end, in seconds, of everything that ran on the device."""
    assert profiler.profiler is not None
    results = profiler.profiler.kineto_results
    assert results is not None
    device = torch.autograd.DeviceType.CUDA
    events = [event for event in results.events() if event.device_type() == device]
    return [(event.start_ns() / 1e9, (event.start_ns() + event.duration_ns()) / 1e9) for event in events]


def union(intervals: Iterable[tuple[float, float]]) -> float:
    """The length of what intervals cover together."""
    covered, end = 0.0, -float("inf")
    for start, stop in sorted(intervals):
        covered += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return covered


def agreement(setting: Setting) -> None:
    runs = [setting.audit(f"agreement-{device}", 2, device) for device in ("cpu", "cuda")]
    first, second = (values(run) for run in runs)
    missing = len(first.keys() ^ second.keys())
    print(f"{len(first):,} numbers on the CPU, {missing} of them or of the GPU's missing on the other")
    print(f"{'measure':<32} {'numbers':>8} {'median':>9} {'99 %':>9} {'largest':>9}   (relative differences)")
    for measure in dict.fromkeys(key[0] for key in first):
        keys = [key for key in first if key[0] == measure and key in second]
        differences = relative([first[key] for key in keys], [second[key] for key in keys])
        cells = " ".join(f"{np.quantile(differences, share):9.1e}" for share in (0.5, 0.99, 1.0)) if keys else ""
        print(f"{measure:<32} {len(keys):>8,} {cells}")


def values(run: attnaudit.Run) -> dict[tuple[object, ...], float]:
    """Every number by what it is of, its measure first."""
    columns = ("measure", "input", "layer", "head", "window", "theory", "reference", "repeat", "value")
    table = run.evidence.select(list(columns)).to_pydict()
    rows = zip(*(table[column] for column in columns), strict=True)
    return {tuple(row[:-1]): row[-1] for row in rows if row[-1] is not None}


def relative(first: Sequence[float], second: Sequence[float]) -> np.ndarray:
    """|a - b| over the larger of the two; 0 where both are."""
    a, b = np.abs(np.array([first, second]))
    size = np.maximum(a, b)
    return np.abs(np.array(first) - np.array(second)) / np.where(size > 0, size, 1.0)


def filled(folder: Path, needed: int, out: Path) -> Path:
    """A folder with at least so many images: the given one, or a new one with variants of its images."""
    originals = find_images(folder)
    if len(originals) >= needed:
        return folder
    out.mkdir(parents=True)
    jobs = ((path, variant, out) for variant in count() for path in originals)
    with ProcessPoolExecutor() as pool:
        list(pool.map(write_variant, islice(jobs, needed), chunksize=16))
    return out


def write_variant(job: tuple[Path, int, Path]) -> None:
    """Variant 0 is the image itself; odd ones are mirrored, and every second step changes the brightness."""
    path, variant, out = job
    image = Image.open(path).convert("RGB")
    image = ImageOps.mirror(image) if variant % 2 else image
    image = ImageEnhance.Brightness(image).enhance(1.0 + 0.04 * (variant // 2))
    image.save(out / f"{path.parent.name}-{path.stem}-{variant:02}.jpg", quality=92)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    options = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {MODEL}", flush=True)
    needed = 1000 if "many" in options.parts else 100
    with tempfile.TemporaryDirectory() as folder:
        images = filled(options.images, needed, Path(folder) / "images")
        setting = Setting(options.weights.absolute(), images, Path(folder) / "runs")
        for part in options.parts:
            begun = time.perf_counter()
            {"shell": shell, "many": many, "stages": stages, "busy": busy, "agreement": agreement}[part](setting)
            print(f"({part}: {time.perf_counter() - begun:.0f} s)\n", flush=True)


if __name__ == "__main__":
    main()
