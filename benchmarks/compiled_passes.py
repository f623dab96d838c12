"""What compiling a network saves in an attack: passes of `attnaudit robust --compile` beside plain ones, in one run.

    python benchmarks/compiled_passes.py docs/results/robustness/recipes/robust-{symmetric,rpc6,rpc-all2,rpc4-admm}.yaml

An attack that follows gradients passes images forward and backward, and Square forward alone. Networks are untrained,
images are noise, and the number of images is not known to the compiler, as in an evaluation. Medians; the first
column of seconds is what compiling both passes takes.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from attnaudit.numerics.precision import matmul_precision
from attnaudit.records.architecture import Architecture
from attnaudit.sources.vision_transformer import build_vision_transformer
from attnaudit.training.recipe_file import read_recipe

Network = Callable[[Tensor], Tensor]
HEAD = (
    "| network | compiling, s | forward, ms | compiled | ratio "
    "| forward and backward, ms | compiled | ratio | difference |"
)


def waiting(device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def forward(network: Network, images: Tensor) -> Tensor:
    with torch.no_grad():
        return network(images)


def both(network: Network, images: Tensor) -> Tensor:
    free = images.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(network(free).square().sum(), free)
    return gradient


def milliseconds(run: Callable[[], Tensor], repeats: int, device: str) -> float:
    times = []
    for _ in range(repeats + 2):  # the first two warm up
        begin = waiting(device)
        run()
        times.append(1e3 * (waiting(device) - begin))
    return statistics.median(times[2:])


def row(recipe: str, images: Tensor, repeats: int) -> str:
    device = images.device.type
    settings = read_recipe(recipe)
    assert isinstance(settings.model, Architecture)
    plain = build_vision_transformer(replace(settings.model, classes=10), 0).to(device).eval().requires_grad_(False)
    torch.compiler.reset()
    compiled = torch.compile(plain, dynamic=True)
    begin = waiting(device)
    forward(compiled, images)
    both(compiled, images)
    cells = [f"{waiting(device) - begin:.0f}"]
    for kind in (forward, both):
        found = [milliseconds(lambda: kind(network, images), repeats, device) for network in (plain, compiled)]  # noqa: B023
        cells += [f"{found[0]:.1f}", f"{found[1]:.1f}", f"{found[0] / found[1]:.2f}"]
    expected = forward(plain, images)
    difference = float((forward(compiled, images) - expected).norm() / expected.norm())
    return f"| {settings.name} | {' | '.join(cells)} | {difference:.1e} |"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("recipes", nargs="+")
    options.add_argument("--images", type=int, default=1000)
    options.add_argument("--repeats", type=int, default=20)
    options.add_argument("--precision", default="tf32", choices=("fp32", "tf32"))
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    asked = options.parse_args()
    torch.manual_seed(0)
    print(HEAD, "|" + (HEAD.count("|") - 1) * " --- |", sep="\n")
    with matmul_precision(asked.precision):
        for recipe in asked.recipes:
            size = read_recipe(recipe).model.image_size  # type: ignore[union-attr]
            images = torch.rand(asked.images, 3, size, size).to(asked.device)
            print(row(recipe, images, asked.repeats), flush=True)


if __name__ == "__main__":
    main()
