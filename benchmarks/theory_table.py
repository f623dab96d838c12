"""Which theory explains how much, where: all theories on networks, trained and untrained, as Markdown tables.

Only what the ranking needs is measured, so that it takes a fraction of the time of an audit. `--pilot` prints the
held-out R² of values from keys, head by head, in some layers.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path

import numpy as np

import attnaudit
from attnaudit.audit.ranking import MEASURES
from attnaudit.claims.registry import CLAIMS
from attnaudit.records.head_table import head_table
from attnaudit.report.theory_map import theory_figure, theory_map
from attnaudit.theories.fitting import FittedTheory
from attnaudit.theories.registry import ALL, THEORIES

REFERENCES = (
    "random_projection",
    "random_keys",
    "rotated",
    "other_keys",
    "shuffled_tokens",
    "planted",
    "planted_with_noise",
)
RIVALS = [name for name, theory in THEORIES.items() if isinstance(theory, FittedTheory)]


def ranking_rows(run: attnaudit.Run) -> str:
    """The ranking: theory, score, measure itself beside its references, noise allowed, heads, verdict."""
    names = ("place", "theory", "score", "observed", "null", "noise allowed", "heads above chance", "verdict")
    lines = [f"| {' | '.join(names)} |", "| --- " * len(names) + "|"]
    for entry in run.ranking:
        least = entry.least
        if least is None or least.means is None:
            lines.append(f"| – | `{entry.theory}` | – | – | – | – | – | {entry.word} ({entry.finding}) |")
            continue
        means = least.means
        noise = "–" if least.tolerance is None else f"{least.tolerance:.0%}"
        heads = f"{entry.above_chance} of {entry.heads}"
        numbers = f"{least.score} | {means['observed']:.3f} | {means[least.null or '']:.3f} | {noise} | {heads}"
        lines.append(f"| {entry.place or '–'} | `{entry.theory}` | {numbers} | {entry.word} ({entry.finding}) |")
    return "\n".join(lines)


def layer_rows(run: attnaudit.Run) -> str:
    """Scores by layer; empty at chance."""
    theories, layers, cells = theory_map(run.ranking, 0.05)
    lines = ["| theory | " + " | ".join(map(str, layers)) + " |", "| --- " * (len(layers) + 1) + "|"]
    for theory, row in zip(theories, cells, strict=True):
        lines.append(f"| `{theory}` | " + " | ".join("" if cell is None else f"{cell:.2f}" for cell in row) + " |")
    return "\n".join(lines)


def pilot_rows(run: attnaudit.Run, layers: list[int]) -> str:
    """Held-out R² of values by head: own keys, another head's, random ones."""
    table = head_table(run.rows, run.models[0], "explained_variance", "keys-linear")
    lines = ["| layer, head | own keys | other head's keys | random projection as keys | planted |", "| --- " * 5 + "|"]
    for place, name in enumerate(table.names):
        if name.layer in layers:
            own = table.heads == place
            columns = ("observed", "other_keys", "random_keys", "planted")
            numbers = " | ".join(f"{np.nanmean(table.references[column][own]):.3f}" for column in columns)
            lines.append(f"| {name.layer}, {name.head} | {numbers} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--random-weights", action="store_true")
    parser.add_argument("--limit", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--theories", nargs="+", choices=ALL, default=ALL)
    parser.add_argument("--pilot", type=int, nargs="+", default=[])
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    begun = time.perf_counter()
    run = attnaudit.audit(
        arguments.model,
        weights=arguments.weights,
        random_weights=arguments.random_weights,
        limit=arguments.limit,
        seed=arguments.seed,
        workers=arguments.workers,
        claims=[name for name in RIVALS if name in CLAIMS and name in arguments.theories],
        theories=list(arguments.theories),
        measures=list(MEASURES),
        references=list(REFERENCES),
        out=arguments.out,
        progress=False,
    )
    weights = "random weights" if arguments.random_weights else "trained"
    print(f"{run.models[0]}, {weights}, {arguments.limit} inputs, {time.perf_counter() - begun:.0f} s\n")
    print(ranking_rows(run), layer_rows(run), sep="\n\n")
    if arguments.pilot:
        print(pilot_rows(run, arguments.pilot), sep="\n")
    winners = Counter(best.theory or "none" for best in run.best_theories)
    print("\nclosest theory by head:", ", ".join(f"{name} {count}" for name, count in winners.most_common()))
    for verdict in run.verdicts:
        print(f"{verdict.claim}: {verdict.words}. {verdict.reason}")
        for score in (*verdict.scores, *verdict.shown):
            print("  ", score.measure, {name: round(mean, 3) for name, mean in (score.means or {}).items()})
    theory_figure(run, [arguments.out / "theories.svg"])


if __name__ == "__main__":
    main()
