"""Is RPC-Attention robust, and why? Trains and evaluates the robust-* recipes on one device, in one call or several.

    attnaudit corrupt vit-small-cifar --limit 500 --severities 2,4 --out cifar10-corrupted
    python -m benchmarks.robustness_experiment --data cifar10 --corrupted cifar10-corrupted --jobs 6 --minutes 20

Repeated, the second command resumes: `--jobs` at a time it trains, seed by seed in the order of RECIPES, runs
`attnaudit robust` on a network as soon as it is there (on corrupted images, and under attack; `--strongest-seeds` by
AutoAttack, too), puts the evaluations together, and writes the verdicts. What layers attend with is on the networks'
cards. After `--minutes` it ends what it started and says what is left: a training that was stopped goes on from its
last checkpoint, an evaluation with the first condition that it lacks. `--pack FILE` collects everything but weights
and single images; its `shares` can be judged as they are, by `attnaudit judge runs/shares/*/`. Unpacked in the
folder of `--runs`, it is resumed on another machine: a network whose evaluations are all finished is not trained again.

The experiment on fully attentional networks is the same with other recipes:

    python -m benchmarks.robustness_experiment --data cifar10 --corrupted cifar10-corrupted --runs fan-runs
        --recipes fan-softmax,fan-symmetric,fan-rpc4 --twin fan-softmax --seeds 0,1,2,3,4 --more-seeds ""

robust-symmetric-temperature needs a finished robust-rpc4 of its seed: its temperature is the one at which symmetric
attention on the keys of that network, for 512 training images, has the entropy of its RPC-Attention. Where it is known
from an earlier experiment, `--temperatures` gives it.
"""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from benchmarks.robustness_jobs import Job, Share, Training, finished, numbers_in, run_jobs
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
#: Evaluations: on corrupted images, under attack, and under attack with AutoAttack as well.
CORRUPTED, ATTACKED, STRONGEST = "robust-corrupted", "robust-attacked", "robust-strongest"


#: The setting of a control that is as sharp as another network.
_TEMPERATURE = "model.attention_options.temperature"


class RobustnessTraining(Training):
    """One network to be."""

    recipes, prefix, late = FOLDER, "robust-", (_TEMPERATURE,)

    @property
    def needs(self) -> tuple[Training, ...]:
        """The network whose sharpness it shares, unless its temperature is given."""
        if self.recipe != TEMPERED or self.seed in temperatures_in(self.arguments.temperatures):
            return ()
        return (RobustnessTraining(PURSUING, self.seed, self.arguments),)

    def changes(self) -> Mapping[str, object]:
        """The temperature, given or known once the other network is there."""
        own = self.arguments
        if self.recipe != TEMPERED:
            return {}
        found = temperatures_in(own.temperatures).get(self.seed)
        for pursuing in self.needs:
            found = temperature(pursuing.folder, own.data, own.device)
        return {_TEMPERATURE: found}


def temperatures_in(text: str) -> dict[int, float]:
    """Those of an option, by seed."""
    pairs = [pair.split(":") for pair in text.split(",") if pair]
    return {int(seed): float(number) for seed, number in pairs}


def twins_of(arguments: argparse.Namespace) -> tuple[Training, ...]:
    """The network whose adversarial images are shown to all others, if there is to be one."""
    return (RobustnessTraining(arguments.twin, arguments.twin_seed, arguments),) if arguments.twin else ()


def conditions(arguments: argparse.Namespace) -> dict[str, tuple[str, ...]]:
    """The options of each evaluation by its name; a network is under attack in one of two, with AutoAttack or without.

    With AutoAttack in the same folder as the others, a verdict takes the strongest of all.
    """
    common = ("--batch", str(arguments.batch), "--device", arguments.device)
    common += ("--precision", arguments.precision, "--json")
    parquet = str(next(arguments.data.glob("test*.parquet")))
    corruptions = ("--corruptions", "all", "--severities", arguments.severities, "--attacks", "none")
    drawn = ("--parquet", parquet, "--limit", str(arguments.images), *shlex.split(arguments.evaluate))
    for twin in twins_of(arguments):
        drawn += ("--twin", str(twin.folder))
    strongest = ",".join(f"autoattack@{epsilon}" for epsilon in arguments.strongest_eps.split(","))
    return {
        CORRUPTED: ("--corrupted", str(arguments.corrupted), *corruptions, *common),
        ATTACKED: ("--attacks", arguments.attacks, "--eps", arguments.eps, *drawn, *common),
        STRONGEST: ("--attacks", f"{arguments.attacks},{strongest}", "--eps", arguments.eps, *drawn, *common),
    }


def trainings_of(arguments: argparse.Namespace) -> list[Training]:
    """Seed by seed, so that what is finished can be compared; at last further seeds of what decides."""
    recipes = arguments.recipes.split(",")
    wanted = [(recipe, seed) for seed in numbers_in(arguments.seeds) for recipe in recipes]
    wanted += [(recipe, seed) for seed in numbers_in(arguments.more_seeds) for recipe in recipes if recipe in DECIDING]
    return [RobustnessTraining(recipe, seed, arguments) for recipe, seed in wanted]


def shares_of(network: Training, arguments: argparse.Namespace) -> dict[str, Share]:
    """What is to be evaluated of a network: by itself, so that no evaluation waits for other networks."""
    recipes = arguments.strongest_recipes or arguments.recipes
    strongest = network.seed in numbers_in(arguments.strongest_seeds) and network.recipe in recipes.split(",")
    attacked = STRONGEST if strongest else ATTACKED
    found: dict[str, Share] = {}
    for name, options in conditions(arguments).items():
        if name in (CORRUPTED, attacked):
            folder = arguments.runs / "shares" / f"{name}-{network.recipe}-{network.seed}"
            found[name] = Share(folder, (network,), options, twins_of(arguments) if "--twin" in options else ())
    return found


def jobs_of(
    trainings: Sequence[Training], evaluated: Sequence[dict[str, Share]], arguments: argparse.Namespace
) -> list[Job]:
    """The twin, then networks, each evaluated before the next is trained: what is there is worth most complete."""
    found: list[Job] = [] if arguments.as_they_are else [*twins_of(arguments)]
    for network, own in zip(trainings, evaluated, strict=True):
        if not all(map(finished, own.values())):
            found += [*network.needs, network]
        found += own.values()
    return list(dict.fromkeys(found))


def main(arguments: argparse.Namespace) -> None:
    deadline = time.monotonic() + 60 * arguments.minutes
    (arguments.runs / "shares").mkdir(parents=True, exist_ok=True)
    trainings = trainings_of(arguments)
    if arguments.as_they_are:
        trainings = list(filter(finished, trainings))
    evaluated = [shares_of(network, arguments) for network in trainings]
    names = list(conditions(arguments))
    if run_jobs(jobs_of(trainings, evaluated, arguments), arguments.jobs, deadline) or arguments.as_they_are:
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
    options.add_argument("--twin", default=TWIN, help="recipe of the network that images are made for; '' for none")
    options.add_argument("--twin-seed", type=int, default=0, help="of the network that images are made for")
    options.add_argument("--jobs", type=int, default=6, help="trainings and evaluations at a time")
    options.add_argument("--minutes", type=float, default=60.0)
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options.add_argument("--train", default="", help="further options of attnaudit train, as in --train=--graph")
    options.add_argument("--evaluate", default="", help="further options of the attacks, as in --evaluate=--compile")
    options.add_argument("--images", type=int, default=1000, help="to attack")
    options.add_argument("--batch", type=int, default=1000, help="images at a time; tries, where AutoAttack has fewer")
    options.add_argument("--attacks", default="noise,fgsm,pgd,apgd")
    options.add_argument("--eps", default="0.5/255,1/255,2/255")
    options.add_argument("--strongest-eps", default="1/255", help="of AutoAttack")
    options.add_argument("--strongest-seeds", default="0", help="that AutoAttack is run on")
    options.add_argument("--strongest-recipes", default="", help="that AutoAttack is run on; all, if none are named")
    options.add_argument("--temperatures", default="", help=f"of {TEMPERED} by seed, as in 0:0.241,1:0.26")
    options.add_argument("--precision", default="fp32", choices=("fp32", "tf32"))
    options.add_argument("--as-they-are", action="store_true", help="evaluate what is trained, whatever is left")
    options.add_argument("--runs", type=Path, default=Path("attnaudit-runs"))
    options.add_argument("--pack", type=Path, help="file.tar.gz for the results")
    return options


if __name__ == "__main__":
    main(parser().parse_args())
