"""Does RPC-Attention segment better? Trains and evaluates the segment-* recipes on one device, in one call or several.

    attnaudit train segment-camvid --data camvid --epochs 1 --out sizes
    attnaudit corrupt sizes --parquet camvid/test.parquet --limit 64 --severities 3 --workers 2 --out camvid-corrupted
    python -m benchmarks.segmentation_experiment --data camvid --corrupted camvid-corrupted --jobs 5 --minutes 8

The first command only says how pictures are cut. Repeated, the third one resumes: `--jobs` at a time it trains in the
order of RECIPES, runs `attnaudit robust` on the networks of a recipe when all are there (on all clean test pictures,
and on the corrupted ones), puts the evaluations together, and writes to `--runs` the verdicts, a table with intervals
over seeds (table.md), mIoU by corruption (corruptions.csv, and a figure if matplotlib is there) and a picture of masks
(masks.png). After `--minutes` it ends what it started and says what is left; `--as-they-are` then evaluates what is
trained. `--pack FILE` collects everything but weights and single pictures.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from benchmarks.robustness_jobs import Job, Share, Training, finished, numbers_in, run_jobs
from benchmarks.robustness_results import judge, pack, put_together
from benchmarks.segmentation_pictures import draw_masks
from benchmarks.segmentation_tables import write_corruptions, write_table

FOLDER = Path(__file__).parents[1] / "docs" / "results" / "segmentation" / "recipes"
RECIPES = ("symmetric", "rpc4", "softmax", "rpc6", "rpc5", "rpc-all2")
CLEAN, CORRUPTED = "segment-clean", "segment-corrupted"


class SegmentationTraining(Training):
    """One network to be."""

    recipes, prefix = FOLDER, "segment-"


def conditions(arguments: argparse.Namespace) -> dict[str, tuple[str, ...]]:
    """The options of each evaluation by its name."""
    common = ("--device", arguments.device, "--precision", arguments.precision, "--json")
    corruptions = ("--corruptions", arguments.corruptions, "--severities", arguments.severities)
    return {
        CLEAN: ("--parquet", str(next(arguments.data.glob("test*.parquet"))), *common),
        CORRUPTED: ("--corrupted", str(arguments.corrupted), *corruptions, *common),
    }


def blocks_of(arguments: argparse.Namespace) -> list[list[Training]]:
    """The seeds of each recipe, which are evaluated together."""
    seeds, recipes = numbers_in(arguments.seeds), arguments.recipes.split(",")
    return [[SegmentationTraining(recipe, seed, arguments) for seed in seeds] for recipe in recipes]


def shares_of(block: list[Training], arguments: argparse.Namespace) -> dict[str, Share]:
    """What is to be evaluated of these networks."""
    numbers = "-".join(str(training.seed) for training in block)
    return {
        name: Share(arguments.runs / "shares" / f"{name}-{block[0].recipe}-{numbers}", tuple(block), options)
        for name, options in conditions(arguments).items()
    }


def main(arguments: argparse.Namespace) -> None:
    deadline = time.monotonic() + 60 * arguments.minutes
    runs: Path = arguments.runs
    (runs / "shares").mkdir(parents=True, exist_ok=True)
    blocks = blocks_of(arguments)
    if arguments.as_they_are:
        blocks = [kept for block in blocks if (kept := list(filter(finished, block)))]
    evaluated = [shares_of(block, arguments) for block in blocks]
    trainings = [training for block in blocks for training in block]
    jobs: list[Job] = [*trainings, *(share for own in evaluated for share in own.values())]
    if run_jobs(jobs, arguments.jobs, deadline) or arguments.as_they_are:
        parts = {name: [own[name] for own in evaluated] for name in (CLEAN, CORRUPTED)}
        together = [put_together(name, shares, runs) for name, shares in parts.items()]
        folders = [folder for folder in together if folder is not None]
        judge(folders, runs)
        write_table(folders, runs / "table.md")
        write_corruptions(folders, runs)
        draw_masks(
            {block[0].recipe: block[0].folder for block in blocks},
            arguments.data,
            arguments.corrupted,
            runs / "masks.png",
        )
    if arguments.pack:
        pack(trainings, (CLEAN, CORRUPTED), runs, arguments.pack, ("table.md", "corruptions.csv", "corruptions.svg"))


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", required=True, type=Path, help="folder of CamVid: train.parquet and test.parquet")
    options.add_argument("--corrupted", required=True, type=Path, help="folder of attnaudit corrupt")
    options.add_argument("--corruptions", default="all")
    options.add_argument("--severities", default="3")
    options.add_argument("--recipes", default=",".join(RECIPES), help="without segment- before them")
    options.add_argument("--seeds", default="0,1,2")
    options.add_argument("--jobs", type=int, default=5, help="trainings and evaluations at a time")
    options.add_argument("--minutes", type=float, default=8.0)
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options.add_argument("--train", default="", help="further options of attnaudit train, as in --train=--graph")
    options.add_argument("--precision", default="tf32", choices=("fp32", "tf32"))
    options.add_argument("--as-they-are", action="store_true", help="evaluate what is trained, whatever is left")
    options.add_argument("--runs", type=Path, default=Path("attnaudit-runs"))
    options.add_argument("--pack", type=Path, help="file.tar.gz for the results")
    return options


if __name__ == "__main__":
    main(parser().parse_args())
