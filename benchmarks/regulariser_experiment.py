"""Does a pull of keys towards principal components help a network to learn? Trains with `pca_weight` and without.

    python -m benchmarks.regulariser_experiment --data cifar10 --out docs/results/training/figures

Every weight is trained from the same seeds: the same start, order and augmentation of images as without it. A weight
below 0 is the control: it pushes keys away as strongly. Repeated, the command resumes. It prints a table and gains
over training without the regulariser, paired by seed, and writes them (regularised.csv, one row per network and epoch)
with a picture (regularised.svg).
"""

from __future__ import annotations

import argparse
import csv
import io
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from benchmarks.regulariser_figure import draw
from benchmarks.robustness_jobs import numbers_in
from benchmarks.robustness_tables import heading
from torch import Tensor, nn

from attnaudit.attention import PCAPenalty
from attnaudit.attention.functional import unexplained_variance
from attnaudit.attention.pca_penalty import directions_of
from attnaudit.records.files import write_whole
from attnaudit.records.recipe import ImageRecipe
from attnaudit.sources import load_model, parse_model
from attnaudit.sources.labelled import LabelledImages
from attnaudit.sources.vision_transformer import build_vision_transformer
from attnaudit.statistics.decisions import decide_gain
from attnaudit.statistics.intervals import CONFIDENCE, student_interval, widened_level
from attnaudit.training import read_recipe, train
from attnaudit.training.augmentation import DeviceAugmentation
from attnaudit.training.distributed import DeviceSettings
from attnaudit.training.tasks import read_data

RECIPE = Path(__file__).parents[1] / "docs" / "results" / "training" / "recipes" / "regularised.yaml"


@dataclass(frozen=True)
class LayerAlignment:
    """How far a layer's keys are those of PCA, on average over its heads; `explained` is what is regularised.

    `explained` is the share of the variance of the layer's input inside the span of a head's keys, between that of a
    random span of this dimension (0) and that of the leading eigenvectors (1). `attended` is cos² between the first of
    these, v₁, and the direction of keys that a head's scores weigh most, the first right singular vector of W_qᵀW_k,
    which in the laboratory is μ; by chance it is 1/width.
    """

    explained: float
    attended: float


@dataclass(frozen=True)
class Network:
    """One training: its test loss and accuracy after every epoch, and the alignment of its layers at the end."""

    weight: float
    seed: int
    losses: tuple[float, ...]
    accuracies: tuple[float, ...]
    layers: tuple[LayerAlignment, ...]


@dataclass(frozen=True)
class Quantity:
    """What is compared, with the smallest gain of interest; of a loss, a lower one is the gain."""

    of: Callable[[Network], float]
    smallest: float
    lower_is_better: bool = False


QUANTITIES = {
    "explained": Quantity(lambda own: float(np.mean([layer.explained for layer in own.layers])), 0.05),
    "attended": Quantity(lambda own: float(np.mean([layer.attended for layer in own.layers])), 0.05),
    "loss, mean over epochs": Quantity(lambda own: float(np.mean(own.losses)), 0.02, lower_is_better=True),
    "loss at the end": Quantity(lambda own: own.losses[-1], 0.02, lower_is_better=True),
    "accuracy at the end": Quantity(lambda own: own.accuracies[-1], 0.01),
}


def alignments(model: nn.Module, images: Tensor) -> tuple[LayerAlignment, ...]:
    """Of every layer, on these images."""
    penalty = PCAPenalty(model.eval())
    model(images)
    with torch.no_grad():
        found = []
        for layer, tokens in penalty.inputs():
            keys, queries = directions_of(layer), directions_of(layer, "q")
            width, dim = keys.shape[1:]
            eigenvalues, eigenvectors = torch.linalg.eigh(torch.cov(tokens.double().T))
            chance, best = dim / width, float(eigenvalues[-dim:].sum() / eigenvalues.sum())
            share = float(1 - unexplained_variance(tokens.double(), keys).mean())
            heaviest = torch.linalg.svd((queries @ keys.mT).double()).Vh[:, 0]
            attended = float((heaviest @ eigenvectors[:, -1]).square().mean())
            found.append(LayerAlignment((share - chance) / (best - chance), attended))
    return tuple(found)


def trained(
    recipe: ImageRecipe, halves: tuple[LabelledImages, LabelledImages], images: Tensor, arguments: argparse.Namespace
) -> list[Network]:
    """Networks of all seeds and weights, seed by seed."""
    found = []
    for seed in numbers_in(arguments.seeds):
        for weight in arguments.weights:
            folder = arguments.runs / f"regularised-{weight:g}-{seed}"
            own = read_recipe(str(arguments.recipe), [f"pca_weight={weight:g}"])
            result = train(own, halves, folder, seed=seed, device_settings=DeviceSettings(arguments.device))
            losses, accuracies = (
                tuple(float(record[name]) for record in result.history) for name in ("test_loss", "test_accuracy")
            )
            layers = alignments(load_model(parse_model(str(folder))).module, images)
            found.append(Network(weight, seed, losses, accuracies, layers))
            print(f"weight {weight:g}, seed {seed}: test accuracy {accuracies[-1]:.2%}", flush=True)
    return found


def gains(networks: Sequence[Network], weight: float, quantity: str) -> np.ndarray:
    """Of a weight over none, for every seed."""
    chosen = QUANTITIES[quantity]
    by_seed = {(own.weight, own.seed): chosen.of(own) for own in networks}
    more = np.array([by_seed[weight, seed] - by_seed[0, seed] for seed in sorted({own.seed for own in networks})])
    return -more if chosen.lower_is_better else more


def table(networks: Sequence[Network]) -> str:
    """Markdown: means over seeds, then gains with intervals and the words of the rule for gains."""
    weights = list(dict.fromkeys(own.weight for own in networks))
    seeds = len({own.seed for own in networks})
    level = widened_level(len(weights) - 1)
    lines = [f"Means over {seeds} seeds [{CONFIDENCE:.0%}, Student's t]:", "", *heading(["pca_weight", *QUANTITIES])]
    for weight in weights:
        own = [network for network in networks if network.weight == weight]
        values = [np.array([quantity.of(network) for network in own]) for quantity in QUANTITIES.values()]
        lines.append(f"| {weight:g} | {' | '.join(_mean(found, CONFIDENCE, '') for found in values)} |")
    lines += [
        "",
        f"Gains over 0, paired by seed [{level:.2%}, Student's t]:",
        "",
        *heading(["pca_weight", *QUANTITIES]),
    ]
    for weight in weights:
        if weight:
            cells = []
            for name, quantity in QUANTITIES.items():
                found = gains(networks, weight, name)
                word, finding = decide_gain(student_interval(found, level), quantity.smallest)
                cells.append(f"{_mean(found, level, '+')} {word.value} ({finding.value})")
            lines.append(f"| {weight:g} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _mean(values: np.ndarray, level: float, sign: str) -> str:
    interval = student_interval(values, level)
    ends = "" if interval is None else f" [{interval[0]:{sign}.3f}, {interval[1]:{sign}.3f}]"
    return f"{values.mean():{sign}.3f}{ends}"


def write_rows(networks: Sequence[Network], file: Path) -> None:
    """A row per network and epoch, with the alignment of all layers in that of the last."""
    buffer = io.StringIO()
    names = [f"{name} {layer}" for layer in range(len(networks[0].layers)) for name in ("explained", "attended")]
    rows = csv.writer(buffer, lineterminator="\n")
    rows.writerow(["pca_weight", "seed", "epoch", "test_loss", "test_accuracy", *names])
    for own in networks:
        ends: list[float] = [value for layer in own.layers for value in asdict(layer).values()]
        for epoch, (loss, accuracy) in enumerate(zip(own.losses, own.accuracies, strict=True), 1):
            last = [f"{value:.4f}" for value in ends] if epoch == len(own.losses) else [""] * len(names)
            rows.writerow([f"{own.weight:g}", own.seed, epoch, f"{loss:.5f}", f"{accuracy:.4f}", *last])
    write_whole(file, buffer.getvalue().encode())


def curves(networks: Sequence[Network]) -> Mapping[float, Mapping[str, np.ndarray]]:
    """By weight: explained variance by layer, and losses and accuracies by epoch; a row per seed."""
    return {
        weight: {
            "explained": np.array([[layer.explained for layer in own.layers] for own in group]),
            "loss": np.array([own.losses for own in group]),
            "accuracy": np.array([own.accuracies for own in group]),
        }
        for weight in dict.fromkeys(own.weight for own in networks)
        if (group := [own for own in networks if own.weight == weight])
    }


def main(arguments: argparse.Namespace) -> None:
    begin = time.process_time()
    recipe = read_recipe(str(arguments.recipe))
    assert isinstance(recipe, ImageRecipe)
    halves = read_data(recipe, arguments.data, arguments.limit)
    test = halves[1]
    pixels = test.first(arguments.images).pixels(recipe.model.image_size)
    images = DeviceAugmentation(recipe.augmentation, test.classes, "cpu").normalise(pixels)
    networks = trained(recipe, halves, images, arguments)
    starts = [alignments(build_vision_transformer(recipe.model, seed), images) for seed in numbers_in(arguments.seeds)]
    untrained = np.array([[layer.explained for layer in own] for own in starts])
    attended = np.mean([[layer.attended for layer in own] for own in starts])
    print(table(networks))
    print(f"Untrained: explained {untrained.mean():.3f}, attended {attended:.3f}.")
    print(
        f"{len(networks)} trainings on {len(halves[0])} images: {time.process_time() - begin:.0f} s of processor time."
    )
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_rows(networks, arguments.out / "regularised.csv")
    draw(curves(networks), untrained, arguments.out / "regularised.svg")


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, default=Path("cifar10"), help="folder with train and test images")
    options.add_argument("--recipe", type=Path, default=RECIPE)
    options.add_argument("--weights", type=float, nargs="+", default=[0.0, 0.1, 1.0, -1.0], help="0 first")
    options.add_argument("--seeds", default="0,1,2,3,4,5")
    options.add_argument("--limit", type=int, default=4000, help="images of each half")
    options.add_argument("--images", type=int, default=512, help="test images on which alignment is measured")
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options.add_argument("--runs", type=Path, default=Path("attnaudit-runs"))
    options.add_argument("--out", type=Path, default=Path("attnaudit-runs"))
    return options


if __name__ == "__main__":
    main(parser().parse_args())
