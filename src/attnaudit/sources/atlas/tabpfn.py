"""TabPFN v1, which was trained on made-up tables to classify rows of any small table in one pass.

It is audited on tables all of whose rows have labels: these look at one another, and never at rows without. Tables come
with scikit-learn or are drawn by it, as those of its training were drawn by others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors.torch import save_file

from attnaudit.errors import WeightsError
from attnaudit.extras import optional
from attnaudit.sources.atlas.architectures.tabpfn import TabPFN
from attnaudit.sources.atlas.building import CONFIG, WEIGHTS, build_from
from attnaudit.sources.atlas.entry import AtlasModel, KnownFile, PackagePart
from attnaudit.sources.model import Sample

_FILE = "prior_diff_real_checkpoint_n_0_epoch_42.cpkt"
_CONFIG = {"features": 100, "classes": 10, "width": 512, "layers": 12, "heads": 4, "inner": 1024}
_ROWS, _LEAST_RIGHT = 288, 0.85

build = build_from(lambda config: TabPFN(**config))


def convert(files: Mapping[str, Path], folder: Path) -> tuple[str, ...]:
    """Write config and weights; the file also holds how the model was trained."""
    stored = torch.load(files[_FILE], map_location="cpu", weights_only=True)[0]
    names = {name: name.removeprefix("module.").removeprefix("transformer_encoder.") for name in stored}
    weights = {names[name]: own.clone() for name, own in stored.items() if not names[name].startswith("criterion.")}
    (folder / CONFIG).write_text(json.dumps(_CONFIG))
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
    return ()


def samples(folder: Path) -> list[Sample]:
    """Tables of one size, each of its own kind; for a verdict a head of 128 dimensions needs 256 rows at least."""
    tables = _tables()
    return [Sample(name, table(own[0][:_ROWS], own[1][:_ROWS], _ROWS)) for name, own in tables.items()]


def _tables() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Features and classes by name, in random order; a number to predict becomes a class: above the median or not."""
    draw = optional("sklearn.datasets", "sklearn", "Drawing tables")
    found = {
        "breast cancer": draw.load_breast_cancer(return_X_y=True),
        "digits": draw.load_digits(return_X_y=True),
        "diabetes": draw.load_diabetes(return_X_y=True),
        "moons": draw.make_moons(_ROWS, noise=0.2, random_state=0),
        "circles": draw.make_circles(_ROWS, noise=0.1, factor=0.5, random_state=0),
        "blobs": draw.make_blobs(_ROWS, n_features=6, centers=5, cluster_std=4.0, random_state=0),
        "shells": draw.make_gaussian_quantiles(n_samples=_ROWS, n_features=5, n_classes=4, random_state=0),
        "hastie": draw.make_hastie_10_2(_ROWS, random_state=0),
        "friedman 1": draw.make_friedman1(_ROWS, random_state=0),
        "friedman 2": draw.make_friedman2(_ROWS, random_state=0),
        "friedman 3": draw.make_friedman3(_ROWS, random_state=0),
        "sparse": draw.make_sparse_uncorrelated(_ROWS, random_state=0),
        "swiss roll": draw.make_swiss_roll(_ROWS, noise=0.5, random_state=0),
        "S-curve": draw.make_s_curve(_ROWS, noise=0.1, random_state=0),
        "linear": draw.make_regression(_ROWS, n_features=20, noise=10.0, random_state=0),
        "clusters": draw.make_classification(_ROWS, n_features=30, n_informative=8, n_classes=3, random_state=0),
    }
    source = np.random.default_rng(0)
    return {name: _classified(features, wanted, source) for name, (features, wanted) in found.items()}


def _classified(features: np.ndarray, wanted: np.ndarray, source: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    several = len(np.unique(wanted)) > _CONFIG["classes"]
    classes = (wanted > np.median(wanted)).astype(int) if several else np.unique(wanted, return_inverse=True)[1]
    order = source.permutation(len(classes))
    return features[order], classes[order]


def check(folder: Path) -> None:
    """Check that the model labels the last third of iris and wine, having seen the labels of the rest.

    Raises:
        WeightsError: it does not.
    """
    network, draw = build(folder, None), optional("sklearn.datasets", "sklearn", "Checking TabPFN")
    for name in ("iris", "wine"):
        features, classes = getattr(draw, f"load_{name}")(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(classes))
        features, classes, labelled = features[order], classes[order], len(classes) * 2 // 3
        with torch.no_grad():
            guessed = network(**table(features, classes, labelled))[0].argmax(-1).numpy()
        right = float((guessed == classes[labelled:]).mean())
        if right < _LEAST_RIGHT:
            raise WeightsError(f"It labels {right:.0%} of the rows of {name}, but the trained model more than 90 %.")


def table(
    features: Float[np.ndarray, "rows columns"], classes: Int[np.ndarray, " rows"], labelled: int
) -> dict[str, torch.Tensor]:
    """The inputs of the network: features standardised by the labelled rows and scaled up for their number.

    An absent column is 0. A row's sum over columns has the same spread for every table, because values are multiplied
    by 100 / columns.
    """
    known = features[:labelled]
    scaled = (features - known.mean(0)) / (known.std(0) + 1e-6)
    scaled = np.clip(scaled, -10, 10) * _CONFIG["features"] / features.shape[1]
    rows = np.zeros((len(features), _CONFIG["features"]), dtype=np.float32)
    rows[:, : features.shape[1]] = scaled
    return {
        "rows": torch.from_numpy(rows)[None],
        "labels": torch.from_numpy(classes[:labelled].astype(np.float32))[None],
    }


TABPFN = AtlasModel(
    name="tabpfn-v1",
    field="tables",
    architecture="encoder over rows, 12 layers, 4 heads, width 512",
    licence="MIT",
    megabytes=96,
    files=(
        KnownFile(
            _FILE,
            "3c9aadaeddbf51462af8c0ee4b3ca3c697890f77e92318abbb0821b75261c392",
            (PackagePart("tabpfn==0.1", f"tabpfn/models_diff/{_FILE}", sdist=True),),
        ),
    ),
    convert=convert,
    check=check,
    build=build,
    samples=samples,
    reads="rows of a table",
)
