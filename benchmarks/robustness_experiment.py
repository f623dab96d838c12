"""Is RPC-Attention robust, and why? Trains and evaluates the robust-* recipes on one device, in one call or several.

    attnaudit corrupt vit-small-cifar --limit 250 --severities 1,3,5 --workers 2 --out cifar10-corrupted
    python benchmarks/robustness_experiment.py --data cifar10 --corrupted cifar10-corrupted --jobs 6 --minutes 9

Repeated, the second command goes on where it was: first the trainings, `--jobs` at a time in the order of RECIPES, then
`attnaudit robust` on all networks at once, under corruption and under attack, then what their layers attend with
(entropy, attention to itself, density of S: `attention.json`), then the verdicts. After `--minutes` it ends what it
started and says what is left. `--pack FILE` collects everything but weights and single pictures.

robust-symmetric-temperature needs a finished robust-rpc4 of its seed: its temperature is the one at which symmetric
attention on the keys of that network, for 512 training pictures, has the entropy of its RPC-Attention.
"""

from __future__ import annotations

import argparse
import io
import json
import shlex
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass, fields
from pathlib import Path

import torch
from torch import Tensor, nn

from attnaudit.attention import Diagnosis, diagnosing, matching_temperatures
from attnaudit.errors import UsageError
from attnaudit.evidence.folder import write_whole
from attnaudit.protocol import Protocol
from attnaudit.sources.labelled import training_and_test
from attnaudit.sources.model import load_model, parse_model

FOLDER = Path(__file__).parents[1] / "docs" / "results" / "robustness" / "recipes"
#: What decides the claims comes first.
RECIPES = (
    "symmetric", "rpc4", "rpc1", "rpc4-random", "symmetric-temperature", "softmax", "rpc6", "rpc-all2", "rpc5",
    "symmetric-compute", "softmax-compute", "rpc4-paper", "rpc4-admm", "scaled-alpha",
)  # fmt: skip
TEMPERED, PURSUING = "symmetric-temperature", "rpc4"
PICTURES = 512
#: A folder with this file is finished.
SUMMARY = "summary.json"
ATTENTION, VERDICTS = "attention.json", "verdicts.json"
#: What is packed: of trainings, of evaluations.
KEPT = ("run.json", "history.json", "card.json"), ("run.json", SUMMARY, "accuracy.csv", "curves.svg", "report.html")


@dataclass(frozen=True)
class Training:
    """One network to be."""

    recipe: str
    seed: int
    runs: Path

    @property
    def folder(self) -> Path:
        """Where it is trained."""
        return self.runs / f"robust-{self.recipe}-{self.seed}"

    @property
    def finished(self) -> bool:
        """Whether it is there."""
        return (self.folder / SUMMARY).exists()

    @property
    def needs(self) -> Training | None:
        """What must be finished before it can start."""
        return Training(PURSUING, self.seed, self.runs) if self.recipe == TEMPERED else None


def network_and_batch(folder: Path, data: Path) -> tuple[nn.Module, Tensor]:
    """A trained network, and the first training pictures as it reads them."""
    model = load_model(parse_model(str(folder)))
    pictures = training_and_test(data)[0].first(PICTURES)
    assert model.preprocess is not None
    prepare = model.preprocess(Protocol.EXACT)
    return model.module, torch.stack([prepare(pictures.picture(place)) for place in range(len(pictures))])


def temperature(pursuing: Path, data: Path) -> float:
    """At which symmetric attention is as sharp as the RPC-Attention of this network; to three digits."""
    network, batch = network_and_batch(pursuing, data)
    (found,) = matching_temperatures(network, [batch]).values()
    return float(f"{found:.3g}")


@torch.no_grad()
def attentions(trainings: list[Training], arguments: argparse.Namespace) -> None:
    """Write what the layers of every network end up attending with: whether controls have what they are to share."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for training in trainings:
        if training.finished:
            network, batch = network_and_batch(training.folder, arguments.data)
            with diagnosing(network.to(arguments.device)) as layers:
                network(batch.to(arguments.device))
            found[training.folder.name] = {name: means(passes[-1]) for name, passes in layers.items()}
    write_whole(arguments.runs / ATTENTION, (json.dumps(found, indent=1) + "\n").encode())


def means(seen: Diagnosis) -> dict[str, float]:
    numbers = {field.name: getattr(seen, field.name) for field in fields(seen)}
    return {name: float(values.mean()) for name, values in numbers.items() if values is not None}


def train_command(training: Training, arguments: argparse.Namespace) -> list[str]:
    words = ["train", str(FOLDER / f"robust-{training.recipe}.yaml"), "--seed", str(training.seed)]
    words += ["--data", str(arguments.data), "--device", arguments.device, "--out", str(training.folder)]
    if training.needs is not None:
        found = temperature(training.needs.folder, arguments.data)
        words += ["--set", f"model.attention_options.temperature={found}"]
    return [*words, *shlex.split(arguments.train)]


def start(words: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as file:
        return subprocess.Popen([sys.executable, "-m", "attnaudit", *words], stdout=file, stderr=file)


def stop(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait()


def train(trainings: list[Training], arguments: argparse.Namespace, deadline: float) -> bool:
    """Whether all are finished; those that failed are said and not tried again in this call."""
    waiting, running = [training for training in trainings if not training.finished], {}
    failed = set()
    while (waiting or running) and time.monotonic() < deadline:
        for training, process in list(running.items()):
            if process.poll() is not None:
                del running[training]
                print(f"{training.folder.name}: {'done' if training.finished else 'FAILED'}", flush=True)
                failed |= set() if training.finished else {training}
        waiting = [training for training in waiting if training.needs not in failed]
        ready = [training for training in waiting if training.needs is None or training.needs.finished]
        for training in ready[: arguments.jobs - len(running)]:
            waiting.remove(training)
            try:
                words = train_command(training, arguments)
            except UsageError as error:
                print(f"{training.folder.name}: not trained: {error}", flush=True)
                failed.add(training)
                continue
            running[training] = start(words, training.folder.with_suffix(".log"))
        if waiting and not ready and not running:
            break
        time.sleep(0.2)
    stop(list(running.values()))
    left = [training.folder.name for training in trainings if not training.finished]
    if left:
        print(f"{len(left)} of {len(trainings)} trainings are left: {', '.join(left)}", flush=True)
    return not left


def evaluations(trainings: list[Training], arguments: argparse.Namespace) -> dict[Path, list[str]]:
    """The command of each evaluation by its folder."""
    models = [str(training.folder) for training in trainings if training.finished]
    common = ["robust", *models, "--device", arguments.device, "--json", "--batch"]
    corrupted = ["--corrupted", str(arguments.corrupted), "--corruptions", "all", "--severities", arguments.severities]
    parquet = next(arguments.data.glob("test*.parquet"))
    attacked = ["--parquet", str(parquet), "--limit", str(arguments.pictures), "--eps", arguments.eps]
    commands = {
        "robust-corrupted": ["1000", *corrupted, "--attacks", "none"],
        "robust-attacked": [str(arguments.pictures), *attacked, "--attacks", arguments.attacks],
    }
    folders = {arguments.runs / name: [*common, *words] for name, words in commands.items()}
    return {folder: [*words, "--out", str(folder)] for folder, words in folders.items()}


def evaluate(trainings: list[Training], arguments: argparse.Namespace, deadline: float) -> bool:
    """Whether all evaluations are done; a repeated one computes only what is missing."""
    for folder, words in evaluations(trainings, arguments).items():
        process = start(words, folder.with_suffix(".log"))
        try:
            code = process.wait(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            stop([process])
            print(f"{folder.name} is left", flush=True)
            return False
        print(f"{folder.name}: {'done' if code == 0 else 'FAILED'}", flush=True)
        if code:
            return False
    return True


def judge(trainings: list[Training], arguments: argparse.Namespace) -> None:
    folders = [str(folder) for folder in evaluations(trainings, arguments)]
    command = [sys.executable, "-m", "attnaudit", "judge", *folders]
    subprocess.run(command, check=False)
    found = subprocess.run([*command, "--json"], capture_output=True, check=True)
    write_whole(arguments.runs / VERDICTS, (json.dumps(json.loads(found.stdout), indent=1) + "\n").encode())


def pack(trainings: list[Training], arguments: argparse.Namespace) -> None:
    """Everything that says something of the networks and of no single picture."""
    of_trainings, of_evaluations = KEPT
    files = [training.folder / name for training in trainings for name in of_trainings]
    files += [folder / name for folder in evaluations(trainings, arguments) for name in of_evaluations]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        more = [arguments.runs / name for name in (ATTENTION, VERDICTS)]
        for file in (*files, *more, *sorted(arguments.runs.glob("robust-*.log"))):
            if file.exists():
                archive.add(file, file.relative_to(arguments.runs))
    write_whole(arguments.pack, buffer.getvalue())
    print(f"{arguments.pack}: {len(buffer.getvalue()) / 1e6:.1f} MB")


def main(arguments: argparse.Namespace) -> None:
    deadline = time.monotonic() + 60 * arguments.minutes
    arguments.runs.mkdir(parents=True, exist_ok=True)
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    trainings = [Training(recipe, seed, arguments.runs) for recipe in arguments.recipes.split(",") for seed in seeds]
    trained = train(trainings, arguments, deadline)
    if (trained or arguments.as_they_are) and evaluate(trainings, arguments, deadline):
        attentions(trainings, arguments)
        judge(trainings, arguments)
    if arguments.pack:
        pack(trainings, arguments)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, help="folder of CIFAR-10, for training and attacks")
    parser.add_argument("--corrupted", required=True, type=Path, help="folder of attnaudit corrupt")
    parser.add_argument("--severities", default="1,3,5")
    parser.add_argument("--recipes", default=",".join(RECIPES), help="without robust- before them")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--jobs", type=int, default=6, help="trainings at a time")
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--train", default="", help="further options of attnaudit train, as one word")
    parser.add_argument("--pictures", type=int, default=500, help="to attack")
    parser.add_argument("--attacks", default="fgsm,pgd,apgd")
    parser.add_argument("--eps", default="0.5/255,1/255,2/255,4/255")
    parser.add_argument("--as-they-are", action="store_true", help="evaluate what is trained, whatever is left")
    parser.add_argument("--runs", type=Path, default=Path("attnaudit-runs"))
    parser.add_argument("--pack", type=Path, help="file.tar.gz for the results")
    main(parser.parse_args())
