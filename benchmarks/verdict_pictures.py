"""Does the word for a network depend on which pictures are drawn? Every picture is measured once, draws are judged.

DeiT-Tiny with random weights, of several seeds, and with trained ones if `--weights` is given. The best projections,
which need all pictures of a draw at once, are left out: they turn *at chance* into *unrealisable*, and nothing into
*supported*. Prints Markdown.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from benchmarks.simulated_audits import REFERENCES, Outcome, outcomes
from benchmarks.simulated_layers import KPCA, KSVD

from attnaudit.api.audits import audit
from attnaudit.claims.claim import Claim
from attnaudit.claims.registry import CLAIMS
from attnaudit.numerics.randomness import numpy_generator
from attnaudit.numerics.threads import single_threaded

MODEL = "timm:deit_tiny_patch16_224"
NAMES = (*KPCA, *KSVD)


def measured(arguments: argparse.Namespace, claims: list[Claim], seed: int | None) -> pa.Table:
    """The evidence of all pictures; with weights drawn from a seed, or trained ones."""
    name = "trained" if seed is None else f"random-{seed}"
    run = audit(
        MODEL,
        arguments.images,
        weights=arguments.weights if seed is None else None,
        random_weights=seed is not None,
        seed=seed or 0,
        limit=arguments.pictures,
        claims=claims,
        references=REFERENCES[True],
        measures=tuple(dict.fromkeys(name for claim in claims for name in claim.decided_by)),
        device="cpu",
        workers=arguments.workers,
        out=arguments.out / name,
        progress=False,
    )
    return run.evidence


def drawn(table: pa.Table, draws: int, size: int, seed: int) -> Iterator[pa.Table]:
    """The rows of so many pictures, for each draw."""
    names = sorted(table["input"].unique().to_pylist())
    generator = numpy_generator(f"pictures/{seed}")
    for _ in range(draws):
        own = [names[place] for place in generator.choice(len(names), size, replace=False)]
        yield table.filter(pc.is_in(table["input"], pa.array(own)))


def judged(table: pa.Table) -> list[Outcome]:
    """What is said of all claims by the rows of one draw."""
    with single_threaded():
        return outcomes(table, table["model"][0].as_py(), [CLAIMS[name] for name in NAMES])


def row(network: str, claim: str, group: list[Outcome]) -> str:
    heads = group[0].heads
    above = sum(len(outcome.above_chance) for outcome in group) / (heads * len(group))
    counts = Counter(f"{outcome.word} ({outcome.finding})" for outcome in group)
    scores = [np.mean([outcome.scores[name][0] for outcome in group]) for name in group[0].scores]
    cells = [
        network,
        f"`{claim}`",
        ", ".join(f"{words} {count}" for words, count in counts.most_common()),
        f"{100 * above:.2f} %",
        f"{max(len(outcome.above_chance) for outcome in group)} of {heads}",
        ", ".join(f"{name} {score:+.3f}" for name, score in zip(group[0].scores, scores, strict=True)),
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--pictures", type=int, default=100)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--size", type=int, default=8)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/verdict-pictures"))
    arguments = parser.parse_args()
    claims = [CLAIMS[name] for name in NAMES]
    print("| network | claim | words | heads above chance | most in a draw | mean scores |\n" + "| --- " * 6 + "|")
    for seed in [*arguments.seeds, *([None] if arguments.weights else [])]:
        table = measured(arguments, claims, seed)
        with ProcessPoolExecutor(arguments.workers) as pool:
            found = list(pool.map(judged, drawn(table, arguments.draws, arguments.size, seed or 0)))
        network = "trained" if seed is None else f"random weights, seed {seed}"
        for place, claim in enumerate(claims):
            print(row(network, claim.name, [own[place] for own in found]), flush=True)


if __name__ == "__main__":
    main()
