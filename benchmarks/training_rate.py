"""How fast a recipe trains, and what share of the device's matrix-product rate that is.

    python benchmarks/training_rate.py --device cuda --steps 60
    python benchmarks/training_rate.py --recipe study-vit-tiny --set batch=1024 --ways compile+graph --profile

Each way of running a step is measured in the same run: as it is, compiled (`attnaudit train --compile`), recorded as a
CUDA graph (`--graph`), both. Images are noise, in memory; augmentation is part of a step. The rate of matrix products
is measured in the same run (8192 x 8192, bfloat16 on a GPU; 2048 x 2048 in float32 on a CPU). Operations are counted by
torch (products only, forward and backward).
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch.utils.flop_counter import FlopCounterMode

from attnaudit.numerics.randomness import seed_everything
from attnaudit.records.recipe import ImageRecipe
from attnaudit.sources.vision_transformer import build_vision_transformer
from attnaudit.training.augmentation import DeviceAugmentation
from attnaudit.training.distributed import DeviceSettings
from attnaudit.training.recipe_file import read_recipe
from attnaudit.training.trainer import Trainer

WAYS = {"cpu": "plain,compile", "cuda": "plain,graph,compile,compile+graph"}
WARM_UP = 6


def waiting(device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def product_rate(device: str) -> float:
    """Operations per second of one large product."""
    size, kind = (8192, torch.bfloat16) if device == "cuda" else (2048, torch.float32)
    a, b = (torch.randn(size, size, device=device, dtype=kind) for _ in range(2))
    for _ in range(3):
        a @ b
    times = []
    for _ in range(10):
        begin = waiting(device)
        a @ b
        times.append(waiting(device) - begin)
    return 2 * size**3 / statistics.median(times)


def operations(recipe: ImageRecipe, device: str) -> float:
    """Operations of a step, per image, uncompiled."""
    trainer = Trainer(build_vision_transformer(recipe.model, 0), recipe, 100, DeviceSettings(device))
    images = torch.randn(8, 3, recipe.model.image_size, recipe.model.image_size, device=device)
    targets = torch.full((8, recipe.model.classes), 1 / recipe.model.classes, device=device)
    with FlopCounterMode(display=False) as counter:
        trainer.step(0, images, targets)
    return counter.get_total_flops() / 8


def stepper(recipe: ImageRecipe, device: str, way: str) -> Callable[[int], None]:
    settings = DeviceSettings(device, compiled="compile" in way, graph="graph" in way)
    trainer = Trainer(build_vision_transformer(recipe.model, 0), recipe, 1000, settings)
    pixels = DeviceAugmentation(recipe.augmentation, recipe.model.classes, device)
    size = recipe.model.image_size
    images = torch.randint(0, 256, (recipe.batch, 3, size, size), dtype=torch.uint8, device=device)
    labels = torch.randint(0, recipe.model.classes, (recipe.batch,), device=device)

    def step(number: int) -> None:
        seed_everything(0, "step", number)
        trainer.step(number, *pixels.mix(pixels.augment(images), labels))

    return step


def profiled(step: Callable[[int], None], device: str) -> str:
    kinds = [torch.profiler.ProfilerActivity.CPU]
    kinds += [torch.profiler.ProfilerActivity.CUDA] if device == "cuda" else []
    with torch.profiler.profile(activities=kinds) as profile:
        for number in range(10):
            step(number)
    order = "self_cuda_time_total" if device == "cuda" else "self_cpu_time_total"
    return str(profile.key_averages().table(sort_by=order, row_limit=25, max_name_column_width=60))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="vit-small-cifar")
    parser.add_argument("--set", action="append", default=[], dest="changes")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--ways", help="some of plain, graph, compile, compile+graph; by default those the device has")
    parser.add_argument("--profile", action="store_true", help="print where the time of ten steps goes")
    arguments = parser.parse_args()
    device = arguments.device
    recipe = read_recipe(arguments.recipe, arguments.changes)
    work, peak = operations(recipe, device), product_rate(device)
    model = recipe.model
    print(f"{recipe.name}: {model.depth} layers of width {model.width}, {model.tokens} tokens, batch {recipe.batch}, "
          f"on {device}; {work / 1e9:.2f} GFLOP an image; a large product: {peak / 1e12:.3g} TFLOP/s")  # fmt: skip
    print(f"{'way':14} {'ms a step':>9} {'images/s':>9} {'TFLOP/s':>8} {'share':>6} {'host':>5} {'GiB':>5}")
    for way in (arguments.ways or WAYS[device]).split(","):
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        step = stepper(recipe, device, way)
        for number in range(WARM_UP):
            step(number)
        begin = waiting(device)
        for number in range(WARM_UP, WARM_UP + arguments.steps):
            step(number)
        submitted = time.perf_counter() - begin
        seconds = waiting(device) - begin
        rate = recipe.batch * arguments.steps / seconds
        memory = torch.cuda.max_memory_allocated() / 2**30 if device == "cuda" else float("nan")
        print(f"{way:14} {1e3 * seconds / arguments.steps:9.2f} {rate:9,.0f} {rate * work / 1e12:8.1f} "
              f"{rate * work / peak:6.1%} {submitted / seconds:5.0%} {memory:5.1f}", flush=True)  # fmt: skip
        if arguments.profile:
            print(profiled(step, device))


if __name__ == "__main__":
    main()
