"""How much do λ, the rules for μ and the number of iterations of RPC-Attention matter?

    attnaudit corrupt vit-small-cifar --limit 500 --severities 2,4 --out cifar10-corrupted
    python -m benchmarks.rpc_sensitivity --data cifar10 --corrupted cifar10-corrupted --jobs 12 --minutes 9

trains the network of the recipe robust-rpc4 for every λ and number of iterations with the authors' rules, and for
every number of iterations with those of the paper's equations and of ADMM, on one device; evaluates all of them on
clean, corrupted and attacked images; and writes `sensitivity.csv` and the surfaces, `sensitivity.svg`. With `--cross`
it changes one thing at a time from λ = 4, four iterations and the authors' rules, which leaves time for seeds; with
several seeds it also writes `sensitivity.md` and `sensitivity-gains.svg`, with intervals. Repeated, it resumes.

Beside accuracies, a row has what layer 0 attends with on 512 training images: entropy, attention to itself, the share
of S that is not 0, the mean size m of keys, and the share that docs/theory/rpc-threshold.md predicts from these keys if
attention were uniform.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from benchmarks.robustness_experiment import FOLDER
from benchmarks.robustness_jobs import Job, Share, finished, run_jobs, training
from benchmarks.robustness_temperature import network_and_batch
from benchmarks.rpc_sensitivity_report import CENTRE, ITERATIONS, RULES, Row, write_report

from attnaudit.attention.diagnosis import diagnose, observing
from attnaudit.attention.functional import AttentionPass
from attnaudit.records.evaluated_networks import EvaluatedNetwork, open_evaluation
from attnaudit.records.evaluation import ConditionKind

#: What a network needs to be in the table.
MEASURED = (ConditionKind.CLEAN, ConditionKind.CORRUPTION, ConditionKind.ATTACK)
#: Networks that one evaluation has: the more, the fewer processes start.
TOGETHER = 8


@dataclass(frozen=True)
class Trained:
    """The network of one setting and seed, to be trained."""

    preset: str
    lam: float
    iterations: int
    seed: int
    arguments: argparse.Namespace = field(repr=False, compare=False)

    @property
    def folder(self) -> Path:
        """Where it is trained."""
        path: Path = self.arguments.runs / f"{self.preset}-lambda{self.lam:g}-iterations{self.iterations}-{self.seed}"
        return path

    @property
    def needs(self) -> tuple[Job, ...]:
        """Nothing."""
        return ()

    def words(self) -> list[str]:
        """A call of `attnaudit train`."""
        rules = {f"model.attention_options.{name}": getattr(self, name) for name in ("preset", "lam", "iterations")}
        words = training(FOLDER / "robust-rpc4.yaml", self.seed, self.folder, self.arguments, rules)
        return [*words, "--epochs", str(self.arguments.epochs)]


def networks_of(arguments: argparse.Namespace) -> list[Trained]:
    """All λ and iterations of the authors' rules, and a line for each of the others; with --cross those through CENTRE.

    Symmetric attention is 1 iteration.
    """
    return [
        Trained(*rule, iterations, seed, arguments)
        for seed in arguments.seeds
        for iterations in ITERATIONS
        for rule in RULES
        if not arguments.cross or rule == CENTRE[:2] or iterations == CENTRE[2]
    ]


def batches_of(networks: Sequence[Trained]) -> Iterator[tuple[Trained, ...]]:
    """A few networks of one seed each, whatever other seeds there are."""
    for seed in dict.fromkeys(network.seed for network in networks):
        own = [network for network in networks if network.seed == seed]
        yield from (tuple(own[start : start + TOGETHER]) for start in range(0, len(own), TOGETHER))


def shares_of(networks: tuple[Trained, ...], arguments: argparse.Namespace) -> Iterator[Share]:
    """The evaluations of a few networks."""
    common = ("--device", arguments.device, "--precision", arguments.precision, "--json")
    parquet = str(next(arguments.data.glob("test*.parquet")))
    options = {
        "corrupted": ("--corrupted", str(arguments.corrupted), "--corruptions", "all", "--severities",
                      arguments.severities, "--attacks", "none", "--batch", "1000", *common),
        "attacked": ("--attacks", "pgd", "--eps", arguments.eps, "--parquet", parquet, "--limit",
                     str(arguments.images), "--batch", str(arguments.images), *common),
    }  # fmt: skip
    for name, words in options.items():
        yield Share(arguments.runs / "shares" / f"{name}-{networks[0].folder.name}", networks, words)


def uniform_share(key: torch.Tensor, value_mean: torch.Tensor, tau: torch.Tensor, iterations: int) -> float:
    """The share of entries with n·|k - v̄| > τ: S after n iterations, if attention were uniform until then.

    The first iteration shrinks the keys themselves, before anything was attended to: |k| > τ.
    """
    moved = key if iterations == 1 else key - value_mean
    return float((iterations * moved.abs() > tau).double().mean())


def layer_facts(trained: Trained) -> dict[str, float]:
    """What layer 0 of a trained network attends with in its last iteration, and how large its keys are."""
    network, batch = network_and_batch(trained.folder, trained.arguments.data)
    passes: list[AttentionPass] = []
    with torch.no_grad(), observing(network, lambda name, own: passes.append(own) if ".0." in name else None):
        network(batch)
    layer = next(module for name, module in network.named_modules() if ".0." in name and hasattr(module, "rule"))
    last, key = diagnose(passes[-1]), passes[-1].original
    assert last.nonzero is not None
    tau = layer.rule.tau(key, None, False)
    # With uniform attention an output is the mean of the values: L = K - S - residual of the first iteration.
    first = passes[0]
    low_rank = first.original - first.sparse - first.residual
    return {
        "entropy": float(last.entropy.mean()),
        "diagonal": float(last.diagonal.mean()),
        "nonzero": float(last.nonzero.mean()),
        "key_size": float(key.abs().mean()),
        "predicted_nonzero": uniform_share(key, low_rank.mean(dim=-2, keepdim=True), tau, trained.iterations),
    }


def accuracies(folders: Sequence[Path]) -> dict[str, dict[ConditionKind, float]]:
    """Mean accuracy by network and kind of condition; clean accuracy is that of all test images."""
    networks: list[EvaluatedNetwork] = [own for folder in folders for own in open_evaluation(folder).networks]
    found: dict[str, dict[ConditionKind, float]] = {}
    for network in networks:
        own = found.setdefault(Path(network.label).name, {ConditionKind.CLEAN: network.facts["test_accuracy"]})
        for kind in (ConditionKind.CORRUPTION, ConditionKind.ATTACK):
            if measured := [entry.accuracy for entry in network.under(kind)]:
                own[kind] = float(np.mean(measured))
    return found


def rows_of(networks: Sequence[Trained], shares: Sequence[Share]) -> list[Row]:
    """A row for every network that was trained and evaluated."""
    measured = accuracies([share.folder for share in shares if finished(share)])
    return [
        Row(
            own.preset, own.lam, own.iterations, own.seed,
            clean=found[ConditionKind.CLEAN],
            corrupted=found[ConditionKind.CORRUPTION],
            attacked=found[ConditionKind.ATTACK],
            **layer_facts(own),
        )
        for own in networks
        if len(found := measured.get(own.folder.name, {})) == len(MEASURED)
    ]  # fmt: skip


def main(arguments: argparse.Namespace) -> None:
    deadline = time.monotonic() + 60 * arguments.minutes
    (arguments.runs / "shares").mkdir(parents=True, exist_ok=True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    networks = networks_of(arguments)
    batches = {batch: list(shares_of(batch, arguments)) for batch in batches_of(networks)}
    jobs: list[Job] = [job for batch, shares in batches.items() for job in (*batch, *shares)]
    run_jobs(jobs, arguments.jobs, deadline)
    if rows := rows_of(networks, [share for shares in batches.values() for share in shares]):
        write_report(rows, arguments.out)
    print(f"{len(rows)} of {len(networks)} networks are trained and evaluated")


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", required=True, type=Path, help="folder of CIFAR-10, for training and attacks")
    options.add_argument("--corrupted", required=True, type=Path, help="folder of attnaudit corrupt")
    options.add_argument("--severities", default="2,4")
    options.add_argument("--seeds", type=int, nargs="+", default=[0])
    options.add_argument("--cross", action="store_true", help="change λ, the rules or the iterations, one at a time")
    options.add_argument("--epochs", type=int, default=10)
    options.add_argument("--images", type=int, default=500, help="to attack")
    options.add_argument("--eps", default="1/255")
    options.add_argument("--jobs", type=int, default=12, help="trainings and evaluations at a time")
    options.add_argument("--minutes", type=float, default=60.0)
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options.add_argument("--precision", default="tf32", choices=("fp32", "tf32"))
    options.add_argument("--train", default="", help="further options of attnaudit train, as one word")
    options.add_argument("--runs", type=Path, default=Path("attnaudit-runs/sensitivity"))
    options.add_argument("--out", type=Path, default=Path("attnaudit-runs/sensitivity"))
    return options


if __name__ == "__main__":
    main(parser().parse_args())
