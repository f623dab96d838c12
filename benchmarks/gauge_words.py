"""Which verdicts are about the network, and which about the gauge it happens to be stored in?

    python benchmarks/gauge_words.py --weights deit_tiny.safetensors --images DIR [--gauges 10] [--limit 8]

Audits DeiT-Tiny as it is and in random gauges: Q → QM, K → KM⁻ᵀ + c, V → VM_v, W_O → M_v⁻¹W_O in every head, which
change no output. Everything is in float64, so that what moves is the claim and not the rounding. Prints the largest
change of the logits, and by claim its words and the range of each score. Exits with 1 if a claim of `INVARIANT` moves.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

import attnaudit
from attnaudit.claims.registry import CLAIMS
from attnaudit.measures.references.reparametrised import well_conditioned
from attnaudit.numerics.randomness import numpy_generator
from attnaudit.protocol import Protocol
from attnaudit.records.verdict import Verdict
from attnaudit.sources.images import choose_images, find_images, image_shards
from attnaudit.sources.model import load_model, parse_model

MODEL = "timm:deit_tiny_patch16_224"
INVARIANT = ("kpca-values-any-gauge", "kpca-eigenvalues")
OTHERS = ("kpca-values", "kpca-eigenvectors", "kpca-projection", "ksvd-values")


def in_gauge(model: nn.Module, seed: int) -> None:
    """Put every head of a vision transformer of timm into a random gauge."""
    for layer, block in enumerate(model.blocks):  # type: ignore[arg-type]
        attention = block.attn
        count, dim = attention.num_heads, attention.head_dim
        weight, bias = attention.qkv.weight.data, attention.qkv.bias.data
        rows, biases = weight.view(3, count, dim, -1), bias.view(3, count, dim)
        outputs = attention.proj.weight.data.view(-1, count, dim)
        for head in range(count):
            draw = numpy_generator(f"gauge/{seed}/{layer}/{head}")
            keys, values = (well_conditioned(draw, dim).to(weight) for _ in range(2))
            shift = torch.from_numpy(draw.standard_normal(dim)).to(weight)
            for place, turn in enumerate((keys.mT, torch.linalg.inv(keys), values.mT)):
                rows[place, head] = turn @ rows[place, head]
                biases[place, head] = turn @ biases[place, head]
            biases[1, head] += shift
            outputs[:, head] = outputs[:, head] @ torch.linalg.inv(values).mT


def pictures(arguments: argparse.Namespace) -> Tensor:
    """The first pictures, as the model reads them."""
    paths = find_images(arguments.images)[: arguments.limit]
    loaded = load_model(parse_model(MODEL, weights=arguments.weights))
    (shard,) = image_shards(choose_images(paths, arguments.images, None, 0), len(paths))
    prepared = shard.prepare(loaded, Protocol.EXACT).inputs
    assert isinstance(prepared, Tensor)
    return prepared.double()


def audited(arguments: argparse.Namespace, inputs: Tensor, seed: int | None) -> tuple[Tensor, Sequence[Verdict]]:
    """Logits and verdicts in a gauge; None for the model's own."""
    model = load_model(parse_model(MODEL, weights=arguments.weights)).module.double().eval()
    model.blocks = model.blocks[: arguments.layers]
    if seed is not None:
        in_gauge(model, seed)
    with torch.no_grad():
        logits = model(inputs)
    model.to(arguments.device)
    with tempfile.TemporaryDirectory() as folder:
        run = attnaudit.audit(
            model,
            inputs,
            claims=arguments.claims,
            measures=tuple(dict.fromkeys(name for claim in arguments.claims for name in CLAIMS[claim].decided_by)),
            references=("random_projection", "planted"),
            repeats=arguments.repeats,
            device=arguments.device,
            out=folder,
            progress=False,
        )
    return logits, run.verdicts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--gauges", type=int, default=10)
    parser.add_argument("--limit", type=int, default=8)
    parser.add_argument("--layers", type=int, help="the first layers only: fitting gauges takes long")
    parser.add_argument("--claims", nargs="+", default=(*INVARIANT, *OTHERS))
    parser.add_argument("--repeats", type=int, default=2, help="draws of the null, each of which is fitted too")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=1, help="processes, each with a gauge of its own")
    arguments = parser.parse_args()
    inputs = pictures(arguments)
    found: list[tuple[Tensor, Sequence[Verdict]]] = []
    seeds = (None, *range(arguments.gauges))
    pool = ProcessPoolExecutor(arguments.workers, multiprocessing.get_context("spawn"))
    for seed, result in zip(seeds, pool.map(partial(audited, arguments, inputs), seeds), strict=True):
        found.append(result)
        print(f"{'own gauge' if seed is None else f'gauge {seed}'}:", flush=True)
        for verdict in found[-1][1]:
            numbers = [f"{own.measure} {own.score.mean:.7f}" for own in verdict.scores if own.score is not None]
            print(f"  {verdict.claim}: {verdict.words}; {', '.join(numbers)}", flush=True)
    moved = max(float((logits - found[0][0]).abs().max()) for logits, _ in found)
    layers = arguments.layers or "all"
    print(
        f"{MODEL}, {layers} layers, {len(inputs)} pictures, {arguments.gauges} gauges: "
        f"logits move by {moved:.1e} at most"
    )
    failed = False
    for place, own in enumerate(found[0][1]):
        verdicts = [verdicts[place] for _, verdicts in found]
        words = dict.fromkeys(verdict.words for verdict in verdicts)
        print(f"{own.claim}: {' / '.join(words)}")
        for number, score in enumerate(own.scores):
            means = [mean.mean for v in verdicts if (mean := v.scores[number].score) is not None]
            heads = [[head.score.mean for head in v.scores[number].heads] for v in verdicts]
            change = max(abs(a - b) for other in heads for a, b in zip(heads[0], other, strict=True))
            print(
                f"  {score.measure}: own {means[0]:.6f}, in others {min(means[1:]):.6f} to {max(means[1:]):.6f}; "
                f"heads change by {change:.1e} at most"
            )
            failed |= own.claim in INVARIANT and change > 1e-6
        failed |= own.claim in INVARIANT and len(words) > 1
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
