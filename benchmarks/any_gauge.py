"""Kernel PCA modulo gauge: what is left of the claim when every gauge is allowed.

    python benchmarks/any_gauge.py timm:deit_tiny_patch16_224 [--inputs 60] [--fitted 20] [--steps 40] [--device cuda]
    python benchmarks/any_gauge.py minilm --inputs 24 --fitted 12

Inputs are in two halves; gauges are fitted to one half and measured on the other, both ways. Prints the held-out
overlap of span V with the predicted span, mean over heads and by layer, in the model's own gauge, in the linear limit
(the span of the centred keys) and in the best gauge, for observed values, random projections, and values planted in a
hidden gauge; the heads in which observed values gain most on random projections; and the time.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence

import torch

from attnaudit.audit.unit import capture_prepared
from attnaudit.capture import Heads
from attnaudit.kernel.any_gauge import Gauge, gauge_overlaps
from attnaudit.measures.gauges import Gauges
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.protocol import Protocol
from attnaudit.sources.model import load_model
from attnaudit.sources.selection import InputSelection, select_inputs, select_specs

Numbers = dict[tuple[str, str, int], dict[tuple[int, int], list[float]]]


def layers(name: str, limit: int, seed: int, device: str) -> Iterator[Heads]:
    """All layers of all inputs, a few inputs at a time."""
    specs = select_specs([name])
    selected = select_inputs(specs, InputSelection(None, limit, seed), Protocol.EXACT, "cpu")
    model = load_model(specs[0])
    for shard in selected.shards:
        prepared = shard.prepare(model, Protocol.EXACT)
        with torch.no_grad():
            yield from capture_prepared(model.module, prepared, device, model.label).layers


class WithPlainGauges(Gauges):
    """Also measures in the model's own gauge and in the linear limit, which need no fit."""

    def plain(self, heads: Heads) -> Iterator[tuple[str, str, int, torch.Tensor]]:
        """Gauge, reference, repeat, and the overlap of every head."""
        keys, columns = heads.key.double(), heads.key.shape[-1]
        mean, one = keys.mean(dim=1), torch.eye(columns).to(keys).expand(len(keys), -1, -1)
        own = one * heads.scale.double().sqrt()[:, None, None]
        spread = (keys - mean[:, None]).norm(dim=-1).amax(dim=1)
        gauges = {
            "own gauge": Gauge.of(own, torch.zeros_like(mean)),
            "linear limit": Gauge.linear_limit(mean, one / spread[:, None, None]),
        }
        for gauge_name, gauge in gauges.items():
            for (reference, repeat), bases in self._values(heads):
                yield gauge_name, reference, repeat, gauge_overlaps(gauge, keys[:, None], bases[:, None])[:, 0]


def table(found: Sequence[Heads], arguments: argparse.Namespace) -> None:
    """Fit, measure and print."""
    names = list(dict.fromkeys(entry.input for heads in found for entry in heads.index))
    halves = {name: place % 2 for place, name in enumerate(names)}
    gauges = WithPlainGauges(halves, arguments.seed, arguments.repeats, inputs=arguments.fitted, steps=arguments.steps)
    for heads in found:
        gauges.add(KeyKernel(heads))
    begin = time.perf_counter()
    gauges.fit()
    fitting = time.perf_counter() - begin
    numbers: Numbers = defaultdict(lambda: defaultdict(list))
    for heads in found:
        measured = [("any gauge", *row) for row in gauges.overlaps(KeyKernel(heads))]
        for gauge, reference, repeat, overlaps in (*gauges.plain(heads), *measured):
            for entry, number in zip(heads.index, overlaps.tolist(), strict=True):
                numbers[gauge, reference, repeat][entry.layer, entry.head].append(number)
    count = len(next(iter(numbers.values())))
    print(
        f"{arguments.model}: {len(names)} inputs, {count} heads, seed {arguments.seed}; gauges fitted to at most "
        f"{arguments.fitted} inputs of a half in {arguments.steps} steps, {fitting:.0f} s on {arguments.device}"
    )
    means = {key: {head: sum(own) / len(own) for head, own in heads.items()} for key, heads in numbers.items()}
    depth = 1 + max(layer for layer, _ in next(iter(means.values())))
    for (gauge, reference, repeat), heads in means.items():
        by_layer = [[number for (layer, _), number in heads.items() if layer == place] for place in range(depth)]
        cells = " ".join(f"{sum(own) / len(own):.3f}" for own in by_layer)
        print(f"{gauge:<13}{reference:<18}{repeat:>2}  {sum(heads.values()) / count:.4f}   {cells}")
    observed = means["any gauge", "observed", 0]
    nulls = [heads for (gauge, name, _), heads in means.items() if gauge == "any gauge" and name.startswith("r")]
    planted = means["any gauge", "planted", 0]
    null = {head: sum(own[head] for own in nulls) / len(nulls) for head in observed}
    print("heads that gain most: layer.head observed / random / planted")
    for head in sorted(observed, key=lambda head: null[head] - observed[head])[:6]:
        print(f"  {head[0]}.{head[1]}  {observed[head]:.3f} / {null[head]:.3f} / {planted[head]:.3f}")
    lowest = min(planted, key=lambda head: planted[head])
    print(f"planted, lowest: {lowest[0]}.{lowest[1]}  {planted[lowest]:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--inputs", type=int, default=60)
    parser.add_argument("--fitted", type=int, default=20)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    table(list(layers(options.model, options.inputs, options.seed, options.device)), options)
