"""Values from keys by least squares, head by head, on held-out pictures: own keys, another head's, random ones.

Prints the share of ‖V‖² and of the variance about the mean of the other half that is explained, both pooled over the
held-out pictures, for both ways of halving together.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

import attnaudit
from attnaudit.measures.references.random_projection import projected_inputs
from attnaudit.numerics.threads import single_threaded
from attnaudit.protocol import Protocol
from attnaudit.sources.model import load_model
from attnaudit.sources.selection import InputSelection, select_inputs, select_specs
from attnaudit.theories.fitting import by_row
from attnaudit.theories.regression import RegressionSums

Captured = tuple[dict[str, Tensor], Tensor]


def captured(model: str, weights: Path, limit: int, layers: list[int]) -> Iterator[tuple[int, Captured]]:
    """By layer: keys of three kinds, and values, input by input."""
    specs = select_specs([model], weights=weights, random_weights=False, seed=0, download=False)
    loaded = load_model(specs[0])
    asked = InputSelection(None, limit, 0, False, False, kind=None, by_folder=False)
    for shard in select_inputs(specs, asked, Protocol.EXACT, "cpu").shards:
        prepared = shard.prepare(loaded, Protocol.EXACT, limit)
        for heads in attnaudit.capture(loaded.module, prepared.inputs, prepared.names).layers:
            layer = heads.index[0].layer
            if layer in layers:
                drawn = projected_inputs(heads, heads.key, "pilot", scaled=False)
                assert drawn is not None
                own = by_row(heads.key, heads)
                keys = {"own": own, "other": own.roll(-1, dims=1), "random": by_row(drawn, heads)}
                yield layer, (keys, by_row(heads.value, heads))


def explained(keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """The shares for every head, both ways together."""
    left, energy, variance = (torch.zeros(values.shape[1], dtype=torch.float64) for _ in range(3))
    for half in (0, 1):
        sums = RegressionSums()
        sums.add(keys[half::2], values[half::2])
        found = sums.solve()
        assert found is not None
        mine, wanted = keys[1 - half :: 2], values[1 - half :: 2]
        for total, other in ((left, found(mine)), (energy, torch.zeros(1)), (variance, found.y_mean)):
            total += (wanted - other).square().sum(dim=(0, 2, 3))
    return 1 - left / energy, 1 - left / variance


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="timm:deit_tiny_patch16_224")
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=40)
    parser.add_argument("--layers", type=int, nargs="+", default=[0, 3, 9])
    arguments = parser.parse_args()
    parts: dict[int, list[Captured]] = {}
    with single_threaded():
        for layer, own in captured(arguments.model, arguments.weights, arguments.limit, arguments.layers):
            parts.setdefault(layer, []).append(own)
        for layer, found in parts.items():
            values = torch.cat([own for _, own in found])
            for name in found[0][0]:
                energy, variance = explained(torch.cat([keys[name] for keys, _ in found]), values)
                shares = " ".join(f"{x:.2f}" for x in energy), " ".join(f"{x:.2f}" for x in variance)
                print(f"layer {layer}, {name} keys: share of ‖V‖² {shares[0]}, of the variance {shares[1]}")


if __name__ == "__main__":
    main()
