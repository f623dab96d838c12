"""Is RPC-Attention robust, and why? Trains and evaluates the robust-* recipes on one device, in one call or several.

    attnaudit corrupt vit-small-cifar --limit 500 --severities 2,4 --out cifar10-corrupted
    python -m benchmarks.robustness_experiment --data cifar10 --corrupted cifar10-corrupted --jobs 6 --minutes 20

Repeated, the second command resumes: `--jobs` at a time it trains in the order of RECIPES, runs
`attnaudit robust` on the networks of a recipe as soon as they are there (corrupted; attacked; some seeds by
AutoAttack), puts the evaluations together, and writes the verdicts. What layers attend with is on the networks' cards.
After `--minutes` it ends what it started and says what is left.
`--pack FILE` collects everything but weights and single images.

The experiment on fully attentional networks is the same with other recipes:

    python -m benchmarks.robustness_experiment --data cifar10 --corrupted cifar10-corrupted --runs fan-runs
        --recipes fan-softmax,fan-symmetric,fan-rpc4 --twin fan-softmax --seeds 0,1,2,3,4 --more-seeds ""

robust-symmetric-temperature needs a finished robust-rpc4 of its seed: its temperature is the one at which symmetric
attention on the keys of that network, for 512 training images, has the entropy of its RPC-Attention.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from benchmarks.robustness_jobs import Job, Share, finished, run_jobs, training
from benchmarks.robustness_results import judge, pack, put_together
from benchmarks.robustness_temperature import temperature

FOLDER = Path(__file__).parents[1] / "docs" / "results" / "robustness" / "recipes"
#: What decides the claims, and is trained in more seeds than the others.
DECIDING = ("symmetric", "rpc4", "rpc1", "rpc4-random", "symmetric-temperature")
TEMPERED, PURSUING, TWIN = "symmetric-temperature", "rpc4", "softmax"
#: Fully attentional networks, an experiment of their own: --recipes fan-softmax,… --twin fan-softmax.
FAN = ("fan-softmax", "fan-symmetric", "fan-rpc4")
RECIPES = (
    TWIN, *DECIDING, "rpc6", "rpc-all2", "rpc5", "rpc4-paper", "rpc4-admm", "scaled-alpha", "softmax-compute",
    "symmetric-compute",
)  # fmt: skip
STRONGEST = "robust-strongest"


@dataclass(frozen=True)
class Training:
    """One network to be."""

    recipe: str
    seed: int
    arguments: argparse.Namespace = field(repr=False, compare=False)

    @property
    def folder(self) -> Path:
        """Where it is trained."""
        path: Path = self.arguments.runs / f"robust-{self.recipe}-{self.seed}"
        return path

    @property
    def needs(self) -> tuple[Training, ...]:
        """The network whose sharpness it shares."""
        return (Training(PURSUING, self.seed, self.arguments),) if self.recipe == TEMPERED else ()

    def words(self) -> list[str]:
        """A call of `attnaudit train`."""
        own = self.arguments
        changes = {}
        for pursuing in self.needs:
            changes["model.attention_options.temperature"] = temperature(pursuing.folder, own.data)
        return training(FOLDER / f"robust-{self.recipe}.yaml", self.seed, self.folder, own, changes)


def twin_of(arguments: argparse.Namespace) -> Training:
    """The network whose adversarial images are shown to all others."""
    return Training(arguments.twin, arguments.twin_seed, arguments)


def conditions(arguments: argparse.Namespace) -> dict[str, tuple[str, ...]]:
    """The options of each evaluation by its name."""
    common = ("--device", arguments.device, "--precision", arguments.precision, "--json")
    parquet = str(next(arguments.data.glob("test*.parquet")))
    twin = str(twin_of(arguments).folder)

    def drawn(images: int) -> tuple[str, ...]:
        return ("--parquet", parquet, "--limit", str(images), "--batch", str(images), *common)

    corruptions = ("--corruptions", "all", "--severities", arguments.severities, "--attacks", "none")
    return {
        "robust-corrupted": ("--corrupted", str(arguments.corrupted), *corruptions, "--batch", "1000", *common),
        "robust-attacked": (
            "--attacks", arguments.attacks, "--eps", arguments.eps, "--twin", twin, *drawn(arguments.images)
        ),
        STRONGEST: ("--attacks", "pgd,autoattack", "--eps", arguments.strongest_eps, *drawn(200)),
    }  # fmt: skip


def numbers_in(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


def blocks_of(arguments: argparse.Namespace) -> list[list[Training]]:
    """Networks that are evaluated together: the seeds of a recipe, and at last further ones of what decides."""
    seeds, more = numbers_in(arguments.seeds), numbers_in(arguments.more_seeds)
    recipes = arguments.recipes.split(",")
    wanted = [(recipe, seeds) for recipe in recipes]
    wanted += [(recipe, more) for recipe in recipes if recipe in DECIDING and more]
    return [[Training(recipe, seed, arguments) for seed in own] for recipe, own in wanted]


def shares(block: Sequence[Training], arguments: argparse.Namespace) -> dict[str, Share]:
    """What is to be evaluated of these networks; by AutoAttack, which takes longest, those of some seeds."""
    found: dict[str, Share] = {}
    strongest = numbers_in(arguments.strongest_seeds)
    for name, options in conditions(arguments).items():
        twin = (twin_of(arguments),) if "--twin" in options else ()
        own = tuple(training for training in block if name != STRONGEST or training.seed in strongest)
        if own:
            numbers = "-".join(str(training.seed) for training in own)
            folder = arguments.runs / "shares" / f"{name}-{own[0].recipe}-{numbers}"
            found[name] = Share(folder, own, options, twin)
    return found


def jobs_of(
    blocks: Sequence[Sequence[Training]], evaluated: Sequence[dict[str, Share]], arguments: argparse.Namespace
) -> list[Job]:
    """The twin, then networks recipe by recipe, each evaluated before the next is trained: that waits for the host."""
    found: list[Job] = [] if arguments.as_they_are else [twin_of(arguments)]
    for block, own in zip(blocks, evaluated, strict=True):
        found += [*block, *own.values()]
    return list(dict.fromkeys(found))


def main(arguments: argparse.Namespace) -> None:
    deadline = time.monotonic() + 60 * arguments.minutes
    (arguments.runs / "shares").mkdir(parents=True, exist_ok=True)
    blocks = blocks_of(arguments)
    if arguments.as_they_are:
        blocks = [kept for block in blocks if (kept := list(filter(finished, block)))]
    evaluated = [shares(block, arguments) for block in blocks]
    trainings = [training for block in blocks for training in block]
    names = list(conditions(arguments))
    if run_jobs(jobs_of(blocks, evaluated, arguments), arguments.jobs, deadline) or arguments.as_they_are:
        parts = {name: [own[name] for own in evaluated if name in own] for name in names}
        together = [put_together(name, parts[name], arguments.runs) for name in names]
        judge([folder for folder in together if folder is not None], arguments.runs)
    if arguments.pack:
        pack(trainings, names, arguments.runs, arguments.pack)


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", required=True, type=Path, help="folder of CIFAR-10, for training and attacks")
    options.add_argument("--corrupted", required=True, type=Path, help="folder of attnaudit corrupt")
    options.add_argument("--severities", default="2,4")
    options.add_argument("--recipes", default=",".join(RECIPES), help="without robust- before them")
    options.add_argument("--seeds", default="0,1,2")
    options.add_argument("--more-seeds", default="3,4", help="of the recipes that decide the claims")
    options.add_argument("--twin", default=TWIN, help="recipe of the network that images are made for")
    options.add_argument("--twin-seed", type=int, default=0, help="of the network that images are made for")
    options.add_argument("--jobs", type=int, default=6, help="trainings and evaluations at a time")
    options.add_argument("--minutes", type=float, default=60.0)
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options.add_argument("--train", default="", help="further options of attnaudit train, as in --train=--graph")
    options.add_argument("--images", type=int, default=1000, help="to attack")
    options.add_argument("--attacks", default="noise,fgsm,pgd,apgd")
    options.add_argument("--eps", default="0.5/255,1/255,2/255")
    options.add_argument("--strongest-eps", default="1/255", help="of AutoAttack")
    options.add_argument("--strongest-seeds", default="0", help="that AutoAttack is run on")
    options.add_argument("--precision", default="fp32", choices=("fp32", "tf32"))
    options.add_argument("--as-they-are", action="store_true", help="evaluate what is trained, whatever is left")
    options.add_argument("--runs", type=Path, default=Path("attnaudit-runs"))
    options.add_argument("--pack", type=Path, help="file.tar.gz for the results")
    return options


if __name__ == "__main__":
    main(parser().parse_args())
