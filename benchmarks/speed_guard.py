"""Did a stage of the default audit get slower? Compare its ratio to a reference computation with a recorded one.

    python -m benchmarks.speed_guard [--device cpu|cuda] [--models NAME …] [--record]

Each model is audited several times by `attnaudit bench`, which also times a reference computation before and after:
eigenpairs of 197 x 197 matrices in float64, and a product of them, on the same device. What is compared is the time of
a stage per head (of what is around the engine, per run) over that of the reference, so that another machine, or a busy
one, changes little. A stage is slower if its median is above the recorded one by more than the noise of both, and by
more than `SMALLEST` of the engine, or of all that is around it; then the exit code is 1. `--record` writes the present
ratios to benchmarks/recorded/speed.json instead, with machine, date and commit.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from attnaudit.api.benchmark import bench

RECORDED = Path(__file__).parent / "recorded" / "speed.json"
#: Both come with attnaudit, with trained weights and inputs.
MODELS = ("vit-small-cifar", "minilm")
#: No stage is as steady as a few runs in a row make it look.
LEAST_NOISE = 0.15
#: Changes by less than this share of the engine, or of what is around it, do not matter.
SMALLEST = 0.01
WHOLE, ONCE = "engine", ", once"


@dataclass(frozen=True)
class Ratio:
    """The median of a stage over the reference computation, and how far single runs were from it, relatively."""

    median: float
    noise: float

    @staticmethod
    def of(ratios: Sequence[float]) -> Ratio:
        """Of several runs."""
        median = statistics.median(ratios)
        return Ratio(median, max(abs(ratio / median - 1) for ratio in ratios) if median else 0.0)


@dataclass(frozen=True)
class Slower:
    """A stage that takes longer than recorded."""

    stage: str
    recorded: Ratio
    found: Ratio

    def __str__(self) -> str:
        times = self.found.median / self.recorded.median if self.recorded.median else float("inf")
        allowed = f"noise {self.recorded.noise:.0%} recorded, {self.found.noise:.0%} now"
        return f"{self.stage}: {times:.2f} times as slow as recorded ({allowed})"


def slower_stages(recorded: Mapping[str, Ratio], found: Mapping[str, Ratio]) -> list[Slower]:
    """Stages that got slower by more than noise, the largest loss first; a stage that is new counts from 0."""
    around, losses = sum(ratio.median for stage, ratio in recorded.items() if stage.endswith(ONCE)), []
    for stage, now in found.items():
        before = recorded.get(stage, Ratio(0.0, 0.0))
        whole = around if stage.endswith(ONCE) else recorded[WHOLE].median
        allowed = before.median * (1 + max(before.noise + now.noise, LEAST_NOISE))
        if now.median > allowed and now.median - before.median > SMALLEST * whole:
            losses.append(Slower(stage, before, now))
    return sorted(losses, key=lambda loss: loss.recorded.median - loss.found.median)


def measured(model: str, limit: int, device: str, repeats: int) -> dict[str, Ratio]:
    """The ratios of every stage, of the engine, and of what is around it."""
    runs: dict[str, list[float]] = {}
    for _ in range(repeats):
        found = bench(model, limit=limit, device=device)
        engine = {**found.stages, WHOLE: found.total, "floor": found.least}
        ratios = {stage: spent / found.heads / found.reference for stage, spent in engine.items()}
        ratios |= {f"{stage}{ONCE}": spent / found.reference for stage, spent in found.around.items()}
        for stage, ratio in ratios.items():
            runs.setdefault(stage, []).append(ratio)
    return {stage: Ratio.of(ratios) for stage, ratios in runs.items() if len(ratios) == repeats}


def machine(device: str) -> str:
    """The processor, and the version of torch."""
    names = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if "model name" in line
    ]
    where = torch.cuda.get_device_name() if device == "cuda" else (names or [platform.machine()])[0]
    return f"{where}, torch {torch.__version__}"


def read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return found


def write(file: Path, key: str, device: str, limit: int, repeats: int, ratios: Mapping[str, Ratio]) -> None:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout
    about = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "commit": commit.strip(), "limit": limit, "repeats": repeats}
    rounded = {stage: {k: float(f"{v:.4g}") for k, v in asdict(ratio).items()} for stage, ratio in ratios.items()}
    records = {**read(file), key: {**about, "machine": machine(device), "ratios": rounded}}
    file.write_text(json.dumps(records, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--limit", type=int, default=2, help="inputs of each audit")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    losses = 0
    for model in options.models:
        key = f"{model}, {options.limit} inputs, {options.device}"
        ratios = measured(model, options.limit, options.device, options.repeats)
        print(
            f"{key}: engine {ratios[WHOLE].median:.1f} reference matrices per head, floor {ratios['floor'].median:.1f}"
        )
        if options.record:
            write(RECORDED, key, options.device, options.limit, options.repeats, ratios)
            continue
        records = read(RECORDED)
        if key not in records:
            print("  nothing is recorded for it: run again with --record")
            continue
        recorded = {stage: Ratio(**entry) for stage, entry in records[key]["ratios"].items()}
        slower = slower_stages(recorded, ratios)
        losses += len(slower)
        for loss in slower:
            print(f"  {loss}")
        if not slower:
            print(f"  no stage is slower than at {records[key]['commit']}, {records[key]['date']}")
    return 1 if losses else 0


if __name__ == "__main__":
    sys.exit(main())
