"""Does Primal-Attention find singular vectors, and only where it is regularised? Trained networks and references.

    python benchmarks/primal_singular_vectors.py --recipe FILE --weights FILE [--recipe FILE --weights FILE …]
        --data cifar10/test.parquet [--images 64] [--repeats 5]

Each recipe is built with the weights beside it, and once untrained, and measured on the first images of a labelled
set, normalised as in training. Prints per network the overlap of E and R with the leading singular vectors of the
layer's own kernel (1 for a kernel SVD), the residual of the dual equations (0 for one), the same for Gaussian weights
and for a planted kernel SVD, where the network lies between these two with a bootstrap interval over images, and J.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from torch import Tensor, nn

import attnaudit
from attnaudit.attention import PrimalAttention
from attnaudit.measures import MEASURES, Scope
from attnaudit.records.evidence import Evidence
from attnaudit.records.head_table import head_table
from attnaudit.records.schema import OBSERVED
from attnaudit.sources.labelled import read_labelled
from attnaudit.sources.vision_transformer import build_vision_transformer
from attnaudit.sources.weights import fit_weights, read_weights
from attnaudit.statistics.scores import head_score
from attnaudit.theories import PRIMAL_SVD
from attnaudit.training import read_recipe
from attnaudit.training.augmentation import DeviceAugmentation


def measured(model: nn.Module, images: Tensor, repeats: int) -> Evidence:
    """The rows of its Primal-Attention layers."""
    measures = [name for name, measure in MEASURES.items() if measure.scope is Scope.PRIMAL]
    with tempfile.TemporaryDirectory() as folder:
        run = attnaudit.audit(
            model,
            images,
            measures=[*measures, "kernel_rank"],
            references=("gaussian", "planted"),
            repeats=repeats,
            claims=[],
            out=folder,
        )
        return Evidence.of_table(run.rows.where(theory=PRIMAL_SVD.name))


def show(name: str, model: nn.Module, evidence: Evidence) -> None:
    label = type(model).__name__
    print(f"\n{name}")
    print(f"  {'measure':<20} {'observed':>10} {'gaussian':>10} {'planted':>10}  score [95 % over images]")
    for measure in MEASURES.values():
        if measure.scope is not Scope.PRIMAL or measure.ideal is None:
            continue
        found = head_score(head_table(evidence, label, measure.name, PRIMAL_SVD.name), measure)
        if found.score is None or found.means is None or found.null is None:
            print(f"  {measure.name:<20} missing: {found.rejected} rejected, {found.unidentifiable} not identifiable")
            continue
        observed, null, planted = (found.means[name] for name in (OBSERVED, found.null, "planted"))
        print(
            f"  {measure.name:<20} {observed:10.4f} {null:10.4f} {planted:10.2e}  "
            f"{found.score}  ({found.informative} heads)"
        )
    values = evidence.where("value", measure="ksvd_objective", reference=OBSERVED)["value"].to_numpy()
    print(f"  J: mean {values.mean():.4g}, mean of |J| {np.abs(values).mean():.4g}, deviation {values.std():.2g}")
    for layer in model.modules():
        if isinstance(layer, PrimalAttention):
            singular = layer.root_singular.detach().square()
            sizes = [weight.detach().square().sum().item() for weight in (layer.weight_e, layer.weight_r)]
            print(
                f"  rank s {layer.rank} of p {layer.head_dim}; "
                f"Λ {singular.min():.2g} to {singular.max():.2g}, mean {singular.mean():.3g}; "
                f"‖W_e‖² {sizes[0]:.3g}, ‖W_r‖² {sizes[1]:.3g} over {layer.num_heads} heads"
            )
    ranks = evidence.where("value", measure="kernel_rank")["value"].to_numpy()
    print(f"  rank of K: {np.unique(ranks).astype(int).tolist()}")


def main(recipes: list[str], weights: list[Path], data: Path, count: int, repeats: int) -> None:
    labelled = read_labelled(data)
    trained = [
        (read_recipe(recipe).for_classes(labelled.classes), path) for recipe, path in zip(recipes, weights, strict=True)
    ]
    size = trained[0][0].model.image_size
    pixels = labelled.first(count).pixels(size)
    images = DeviceAugmentation(trained[0][0].augmentation, labelled.classes, "cpu").normalise(pixels)
    print(f"{len(images)} images of {data.name}, {repeats} draws of the references")
    untrained = f"{trained[0][0].name}, untrained"
    model = build_vision_transformer(trained[0][0].model, 0)
    show(untrained, model, measured(model, images, repeats))
    for recipe, path in trained:
        model = build_vision_transformer(recipe.model, 0)
        fit_weights(model, read_weights(path), path, recipe.name)
        name = f"{recipe.name} (η = {recipe.ksvd_weight:g})"
        show(name, model, measured(model, images, repeats))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", action="append", required=True, help="a recipe, by name or as a .yaml file")
    parser.add_argument("--weights", action="append", required=True, type=Path, help="its weights, in the same order")
    parser.add_argument("--data", required=True, type=Path, help="a Parquet file, or a folder of class folders")
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    main(arguments.recipe, arguments.weights, arguments.data, arguments.images, arguments.repeats)
