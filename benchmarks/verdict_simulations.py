"""How often verdicts are right: audits of simulated layers whose truth is known, judged by the real claims.

Every audit draws another network with other inputs (`simulated_layers`) and goes the way of a real one, from references
and measures to the jury (`simulated_audits`). Prints Markdown tables; `--out` keeps what every audit said.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from benchmarks.interval_coverage import coverage_table
from benchmarks.simulated_audits import Outcome, evidence, outcomes, selection
from benchmarks.simulated_layers import (
    CASES,
    GAUGES,
    HEADS,
    MIXED,
    MODEL,
    NULLS,
    PLANTED,
    PROJECTIONS,
    RIVALS,
    TURNED,
    UNKNOWN,
)

from attnaudit.claims.registry import CLAIMS
from attnaudit.numerics.threads import single_threaded
from attnaudit.records.verdict import VerdictWord


@dataclass(frozen=True)
class Job:
    """One audit."""

    case: str
    inputs: int
    seed: int


@dataclass(frozen=True)
class Said:
    """What one audit said of one claim."""

    job: Job
    outcome: Outcome


def audit(job: Job) -> list[Said]:
    """Draw a layer, measure it, and judge its claims."""
    case = CASES[job.case]
    claims = [CLAIMS[name] for name in case.claims]
    with single_threaded():
        table = evidence(case.layer(job.inputs, job.seed), selection(claims, job.seed, known=case.known))
        return [Said(job, outcome) for outcome in outcomes(table, MODEL, claims)]


Group = Sequence[Outcome]


def _share(group: Group, holds: Callable[[Outcome], bool]) -> str:
    return f"{100 * sum(map(holds, group)) / len(group):.1f} %"


def _findings(group: Group, true: int | None) -> str:
    """Findings and how often they occurred, the most frequent first."""
    counts = Counter(outcome.finding for outcome in group)
    return ", ".join(f"{finding} {count}" for finding, count in counts.most_common())


def _supported(group: Group, true: int | None) -> str:
    return _share(group, lambda outcome: outcome.word is VerdictWord.SUPPORTED)


def _above_chance(group: Group, true: int | None) -> str:
    heads = sum(len(outcome.above_chance) for outcome in group) / (HEADS * len(group))
    return f"{100 * heads:.2f} %"


def _right_number(group: Group, true: int | None) -> str:
    return _share(group, lambda outcome: len(outcome.satisfying) == true)


def _right_heads(group: Group, true: int | None) -> str:
    named = tuple(range(true or 0))
    return _share(group, lambda outcome: outcome.satisfying == named and outcome.above_chance == named)


def _contain_truth(group: Group, true: int | None) -> str:
    """Whether the intervals of all measures contain the true mean, which they are to do together in 95 of 100."""
    truth = (true or 0) / HEADS
    return _share(group, lambda outcome: all(low <= truth <= high for _, low, high in outcome.scores.values()))


def _mean_scores(group: Group, true: int | None) -> str:
    names = group[0].scores
    means = {name: sum(outcome.scores[name][0] for outcome in group) / len(group) for name in names}
    return ", ".join(f"{name} {mean:.2f}" for name, mean in means.items())


def _noise_allowed(group: Group, true: int | None) -> str:
    """ε* of planted heads, the smallest and the mean over audits."""
    found = [outcome.noise_allowed for outcome in group if outcome.noise_allowed is not None]
    return f"{min(found):.0%}, mean {sum(found) / len(found):.0%}" if found else "–"


def _table(said: Iterable[Said], cases: Iterable[str], *cells: Callable[[Group, int | None], str]) -> str:
    """A row per case and number of inputs, a column per claim."""
    asked = set(cases)
    groups: dict[tuple[str, int], dict[str, list[Outcome]]] = {}
    for own in said:
        if own.job.case in asked:
            by_claim = groups.setdefault((own.job.case, own.job.inputs), {})
            by_claim.setdefault(own.outcome.claim, []).append(own.outcome)
    claims = [name for name in CLAIMS if any(name in by_claim for by_claim in groups.values())]
    lines = [["values", "inputs", *(f"`{claim}`" for claim in claims)], ["---"] * (2 + len(claims))]
    for case, inputs in sorted(groups, key=lambda own: (list(CASES).index(own[0]), own[1])):
        found, true = groups[case, inputs], CASES[case].true
        row = ["; ".join(cell(found[claim], true) for cell in cells) if claim in found else "" for claim in claims]
        lines.append([case, str(inputs), *row])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def tables(said: Sequence[Said]) -> dict[str, str]:
    """By title, in Markdown."""
    nulls = [*NULLS, *UNKNOWN]
    found = {
        "Nothing is true: supported; null heads above chance": _table(said, nulls, _supported, _above_chance),
        "Nothing is true: findings": _table(said, nulls, _findings),
        "Everything is true: supported; the right number of heads": _table(said, PLANTED, _supported, _right_number),
        "Some heads are true: the right number of heads; the right ones satisfy it and are above chance, no others": (
            _table(said, MIXED, _right_number, _right_heads)
        ),
        "Audits whose intervals of the mean score contain the true one": (
            _table(said, [*PROJECTIONS, *MIXED], _contain_truth)
        ),
        "Other bases: findings; mean scores": _table(said, [*TURNED, *GAUGES], _findings, _mean_scores),
        "Rival theories: findings; heads above chance; mean scores; noise allowed": (
            _table(said, RIVALS, _findings, _above_chance, _mean_scores, _noise_allowed)
        ),
    }
    return {title: table for title, table in found.items() if table.count("\n") > 1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=200)
    parser.add_argument("--inputs", type=int, nargs="+", default=[8, 25])
    parser.add_argument(
        "--cases",
        nargs="+",
        choices=list(CASES),
        default=[case for case in CASES if case not in GAUGES and case not in RIVALS],
    )
    parser.add_argument("--draws", type=int, default=20_000, help="of numbers for the coverage of intervals")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.audits)
    # The longest first, so that no process is left alone with them.
    jobs = [
        Job(case, inputs, seed)
        for inputs in sorted(arguments.inputs, reverse=True)
        for case in arguments.cases
        for seed in seeds
    ]
    with ProcessPoolExecutor(arguments.workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        said = [own for found in pool.map(audit, jobs, chunksize=4) for own in found]
        coverage = coverage_table(arguments.draws, arguments.seed, pool) if arguments.draws else ""
    if arguments.out is not None:
        arguments.out.write_text("\n".join(json.dumps(asdict(own)) for own in said) + "\n")
    print(f"{arguments.audits} audits of each row, seeds {seeds.start} to {seeds.stop - 1}")
    found = tables(said) | ({"Intervals that miss the mean of numbers": coverage} if coverage else {})
    for title, table in found.items():
        print(f"\n{title}\n\n{table}")


if __name__ == "__main__":
    main()
