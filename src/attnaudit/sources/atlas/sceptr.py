"""SCEPTR, an encoder of T-cell receptors by their six binding loops (Nagano and others 2025), in two sizes.

A token is an amino acid of a loop, and is told by its letter, its place within the loop, from 0 to 1, and the loop:
22 + 1 + 6 numbers that are 0 or 1 but for the place, and that a linear map takes to the width of the network. A first
token stands for the whole receptor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import one_hot

from attnaudit.errors import WeightsError
from attnaudit.sources.atlas.building import build_from
from attnaudit.sources.atlas.entry import AtlasModel, KnownFile, PackagePart, resource_texts
from attnaudit.sources.atlas.folders import write_model
from attnaudit.sources.model import Sample
from attnaudit.sources.weights import read_weights

_LETTERS = "ACDEFGHIKLMNPQRSTVWY"
#: The numbers of letters and loops begin at 1, as 0 is nothing; letters come after the mask and the first token.
_MASK, _FIRST, _BEFORE_LETTERS, _LOOPS = 1, 2, 3, 6
_KINDS = len(_LETTERS) + _BEFORE_LETTERS
_HEADS = 8
#: What the package calls the parts of the network.
_NAMES = {
    "_self_attention_stack._initial_projector.": "project.",
    "_self_attention_stack._standard_stack._self_attention_stack.": "encoder.",
    "_mlm_token_prediction_projector.projector.": "letters.",
}
#: A guess is right about one letter of twenty.
_LEAST = 0.4
_texts = resource_texts("tcr_loops.txt")


class ReceptorEncoder(nn.Module):
    """A stack of encoder layers with the normalisation after each part, as torch has it."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.project = nn.Linear(_KINDS - 1 + 1 + _LOOPS, width, bias=False)
        layer = nn.TransformerEncoderLayer(width, _HEADS, 4 * width, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.letters = nn.Linear(width, len(_LETTERS))

    def forward(self, tokens: Int[Tensor, "batch tokens 4"]) -> Float[Tensor, "batch tokens width"]:
        """Encode tokens, given by letter, place in the loop from 1, length of the loop, and loop."""
        letter, place, length, loop = tokens.unbind(-1)
        relative = torch.where(length > 1, (place - 1) / (length - 1).clamp(min=1), 0.5)
        relative = torch.where(place > 0, relative, 0.0)
        kinds, loops = one_hot(letter, _KINDS)[..., 1:], one_hot(loop, _LOOPS + 1)[..., 1:]
        features = torch.cat([kinds, relative[..., None], loops], -1).to(self.project.weight.dtype)
        encoded: Tensor = self.encoder(self.project(features))
        return encoded


def tokenised(loops: Sequence[str]) -> Int[Tensor, "1 tokens 4"]:
    """The tokens of a receptor: CDR1, CDR2 and CDR3 of the alpha chain, then of the beta chain."""
    rows = [
        (_LETTERS.index(letter) + _BEFORE_LETTERS, place, len(own), number)
        for number, own in enumerate(loops, 1)
        for place, letter in enumerate(own, 1)
    ]
    return torch.tensor([[(_FIRST, 0, 0, 0), *rows]])


def convert(width: int, layers: int, files: Mapping[str, Path], folder: Path) -> tuple[str, ...]:
    """Write config and weights; the tables that say which number is 1 are left out."""
    (file,) = files.values()
    weights = {
        name.replace(theirs, ours, 1): tensor
        for name, tensor in read_weights(file).items()
        for theirs, ours in _NAMES.items()
        if name.startswith(theirs)
    }
    write_model(folder, {"width": width, "layers": layers}, weights)
    return ()


build = build_from(lambda config: ReceptorEncoder(config["width"], config["layers"]))


def samples(folder: Path) -> list[Sample]:
    """Receptors of the cells of one data set."""
    return [
        Sample(f"receptor-{number}", {"tokens": tokenised(text.split())}) for number, text in enumerate(_texts(folder))
    ]


def check(folder: Path) -> None:
    """Check that the model guesses letters of receptors from all others: each is masked in turn, alone.

    Raises:
        WeightsError: too few of the guesses are right.
    """
    network = build(folder, None)
    assert isinstance(network, ReceptorEncoder)
    right = letters = 0
    for text in _texts(folder)[:8]:
        tokens = tokenised(text.split())[0]
        places = torch.arange(1, len(tokens))
        masked = tokens.repeat(len(places), 1, 1)
        masked[places - 1, places, 0] = _MASK
        with torch.no_grad():
            guesses = network.letters(network(masked)[places - 1, places]).argmax(-1)
        right += int((guesses + _BEFORE_LETTERS == tokens[1:, 0]).sum())
        letters += len(places)
    if right < _LEAST * letters:
        raise WeightsError(
            f"It guesses {right} of {letters} masked letters, but the trained model {_LEAST:.0%} or more."
        )


def _sceptr(name: str, save: str, width: int, layers: int, sha256: str) -> AtlasModel:
    return AtlasModel(
        name=name,
        field="proteins",
        architecture=f"encoder, {layers} layers, {_HEADS} heads, width {width}",
        licence="MIT",
        megabytes=11,
        files=(
            KnownFile(
                f"{name}.pt", sha256, (PackagePart("sceptr==1.2.0", f"sceptr/_model_saves/{save}/state_dict.pt"),)
            ),
        ),
        convert=partial(convert, width, layers),
        check=check,
        build=build,
        samples=samples,
        reads="loops of T-cell receptors",
    )


SCEPTR = _sceptr("sceptr", "SCEPTR", 64, 3, "b4c2d06bc5ac1c395cbf97e9be8e8e6db4b06996bc9b5b6a79451fef9ec3c8d8")
SCEPTR_LARGE = _sceptr(
    "sceptr-large", "SCEPTR_large", 128, 4, "1c6855b32e0c3b777176e3cb0d0d328c6e528593b632793571b681e53d8cd715"
)
