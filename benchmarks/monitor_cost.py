"""What the monitor costs: the same training without it and with it at three settings, in turns, in one run.

    python benchmarks/monitor_cost.py [--steps 500] [--every 500 100 20] [--device cuda]

A ViT (6 layers, width 192, 6 heads, 65 tokens) on 32 x 32 noise, AdamW. The monitor has one fixed batch of the size of
a training batch, its default number of scored inputs and all its references, and writes to a folder. The trainings take
turns of a few steps, so that whatever else the machine does meets all of them. On a CPU the seconds are the
processor's, on one thread.

Prints for each setting the time per step beside that without a monitor, and the share of its time that was spent in
measurements: the difference of two trainings is uncertain by more than what a rare measurement takes. The measurement
at step 0, which a training has once, is told apart.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from math import gcd
from pathlib import Path
from statistics import mean

import pyarrow as pa
import torch
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn

from attnaudit.training import Monitor

BATCH = {"cpu": 8, "cuda": 256}


class TimedMonitor(Monitor):
    """A monitor that knows how long each measurement took."""

    clock: Callable[[], float]
    seconds: list[float]

    def measure(self, step: int) -> pa.Table:
        """As always, under a clock."""
        begin = self.clock()
        table = super().measure(step)
        self.seconds.append(self.clock() - begin)
        return table


class Training:
    """A model, its optimiser, and the seconds it has taken."""

    def __init__(self, device: str, clock: Callable[[], float]) -> None:
        torch.manual_seed(0)
        self.model = VisionTransformer(img_size=32, patch_size=4, embed_dim=192, depth=6, num_heads=6, num_classes=10)
        self.model.to(device).train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.clock, self.seconds = clock, 0.0

    def watch(self, fixed: Tensor, every: int, out: Path) -> None:
        """Attach a monitor, which measures the start."""
        self.monitor = TimedMonitor(self.model, fixed, every=every, out=out)
        self.monitor.clock, self.monitor.seconds = self.clock, []
        self.monitor.attach(self.optimizer)

    def take(self, steps: int, images: Tensor, labels: Tensor) -> None:
        """Go on for some steps."""
        begin = self.clock()
        for _ in range(steps):
            self.optimizer.zero_grad(set_to_none=True)
            nn.functional.cross_entropy(self.model(images), labels).backward()
            self.optimizer.step()
        self.seconds += self.clock() - begin


def waiting_clock() -> float:
    torch.cuda.synchronize()
    return time.perf_counter()


def main(steps: int, settings: list[int], device: str) -> None:
    torch.set_num_threads(1)
    clock = time.process_time if device == "cpu" else waiting_clock
    size = BATCH[device]
    images, labels = torch.randn(size, 3, 32, 32, device=device), torch.randint(10, (size,), device=device)
    alone = Training(device, clock)
    watched = {every: Training(device, clock) for every in settings}
    warm_up = Training(device, clock)
    warm_up.take(3, images, labels)
    with tempfile.TemporaryDirectory() as folder:
        warm_up.watch(images, 1, Path(folder) / "warm-up")
        for every, training in watched.items():
            training.watch(images, every, Path(folder) / str(every))
        turn = gcd(*settings)
        for _ in range(steps // turn):
            for training in (alone, *watched.values()):
                training.take(turn, images, labels)
    print(f"{steps} steps of {size} images on {device}, torch {torch.__version__}")
    print(f"without a monitor  {alone.seconds / steps * 1e3:8.1f} ms per step")
    for every, training in watched.items():
        first, *measurements = training.monitor.seconds
        print(
            f"every {every:>4} steps   {training.seconds / steps * 1e3:8.1f} ms per step, "
            f"{training.seconds / alone.seconds:.3f} of it without; {sum(measurements) / training.seconds:.1%} in "
            f"{len(measurements)} measurements of {mean(measurements) * 1e3:.0f} ms (the first: {first * 1e3:.0f} ms)"
        )
    same = all(
        torch.equal(a, b)
        for training in watched.values()
        for a, b in zip(alone.model.state_dict().values(), training.model.state_dict().values(), strict=True)
    )
    print(f"weights bit-identical to those without a monitor: {same}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--every", type=int, nargs="+", default=[500, 100, 20])
    parser.add_argument("--device", choices=sorted(BATCH), default="cpu")
    arguments = parser.parse_args()
    main(arguments.steps, arguments.every, arguments.device)
