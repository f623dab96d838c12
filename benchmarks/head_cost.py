"""What one head costs: Table 1 end to end, and γ, against the plain computation in the same run.

    python benchmarks/head_cost.py [--images 8]

One thread, DeiT-Tiny (trained weights where ATTNAUDIT_DATA has them, since the cost of the assignment depends on the
values), noise for images. Prints ms per head, the ratio to the reference, and how far the two disagree.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import timm
import torch
from threadpoolctl import threadpool_limits

import reference
from attnaudit.capture import capture
from attnaudit.kernel import paper, standardised
from attnaudit.measures import MEASURES, MeasureInput, evaluate
from attnaudit.measures.gamma import gammas, mean_absolute_difference, mean_relative_difference, perturbed
from attnaudit.papers.tables import TABLES
from attnaudit.protocol import Protocol
from attnaudit.sources.data import data_weights
from attnaudit.sources.weights import fit_weights, read_weights

MODEL = "deit_tiny_patch16_224"
TABLE1 = [MEASURES[name] for name in TABLES["table1"].measures]
SHARD = 4


def build() -> torch.nn.Module:
    torch.manual_seed(0)
    model = timm.create_model(MODEL).eval()
    weights = data_weights(MODEL)
    if weights is not None:
        fit_weights(model, read_weights(weights), weights, MODEL)
    print(f"weights: {'trained' if weights else 'random'}")
    return model


def best_of(repeats: int, function: Callable[[], Any]) -> tuple[float, Any]:
    best, result = float("inf"), None
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return best, result


def ours(model: torch.nn.Module, images: torch.Tensor) -> dict[str, torch.Tensor]:
    numbers: dict[str, list[torch.Tensor]] = {}
    for start in range(0, len(images), SHARD):
        for heads in capture(model, images[start : start + SHARD]).layers:
            for name, found in evaluate(TABLE1, MeasureInput.of(heads, Protocol.PAPER)).items():
                numbers.setdefault(name, []).append(found.values)
    return {name: torch.cat(parts) for name, parts in numbers.items()}


def theirs(model: torch.nn.Module, images: torch.Tensor) -> list[dict[str, float]]:
    numbers = []
    for layer in range(len(model.blocks)):
        key, value = reference.keys_and_values(model, images, layer)
        numbers += [reference.similarity(k, v) for k, v in zip(key.flatten(0, 1), value.flatten(0, 1), strict=True)]
    return numbers


def table1(images: int) -> None:
    model = build()
    batch = torch.randn(images, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    heads = images * 36
    ours(model, batch[:SHARD])
    fast, _ = best_of(3, lambda: ours(model, batch))
    slow, plain = best_of(1, lambda: theirs(model, batch[:SHARD]))
    slow_heads = SHARD * 36
    print(f"Table 1: attnaudit {fast / heads * 1e3:.2f} ms per head ({heads} heads, forward included)")
    print(f"         reference {slow / slow_heads * 1e3:.2f} ms per head ({slow_heads} heads)")
    print(f"         ratio     {slow / slow_heads / (fast / heads):.1f}x")
    first = ours(model, batch[:SHARD])
    for name, key in (("linear_cka", "linear"), ("kernel_cka", "kernel"), ("matched_cosine_mean", "matched")):
        difference = (first[name] - torch.tensor([row[key] for row in plain])).abs()
        print(f"         {name}: median |difference| {difference.median():.1e}, largest {difference.max():.1e}")


def gamma_means(images: torch.Tensor, vectors: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    values = gammas(images, vectors)
    return mean_absolute_difference(values), mean_relative_difference(values)


def gamma() -> None:
    key = 0.5 * torch.randn(3, 197, 64, generator=torch.Generator().manual_seed(0))
    spectrum = paper.spectrum(standardised(key))
    vectors = perturbed(spectrum.eigenvectors, 0)
    fast, result = best_of(5, lambda: gamma_means(spectrum.image(vectors), vectors))
    component = gammas(spectrum.image(vectors), vectors)[0, :, 0]
    slow, plain = best_of(1, lambda: reference.gamma_component(component))
    print(f"gamma:   attnaudit {fast / 3 * 1e3:.2f} ms per head (64 components, means of both kinds)")
    print(f"         reference {slow * 64:.1f} s per head (one component measured, times 64; means only)")
    print(f"         ratio     {slow * 64 / (fast / 3):.0f}x")
    print(f"         first component: {result[0][0, 0]:.4e} and {plain[0]:.4e}")


def main(images: int) -> None:
    table1(images)
    gamma()


def run_on_one_thread(benchmark: Callable[[int], None], description: str) -> None:
    """Read --images and run a benchmark with one thread for torch and BLAS."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--images", type=int, default=8)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        benchmark(arguments.images)


if __name__ == "__main__":
    run_on_one_thread(main, __doc__ or "")
