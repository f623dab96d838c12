"""midisim, an encoder of piano music: notes as tokens, some of which were masked in training.

A chord is the time since the last one, and then length and pitch of each of its notes. The documentation gives the
architecture and the number of the mask; the layout is what makes the model guess all masked tokens of a scale and of a
row of chords.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int
from safetensors.torch import save_file
from torch import Tensor

from attnaudit.errors import WeightsError
from attnaudit.sources.atlas.architectures.note_encoder import NoteEncoder
from attnaudit.sources.atlas.building import CONFIG, WEIGHTS, build_from
from attnaudit.sources.atlas.entry import AtlasModel, KnownFile, PackagePart
from attnaudit.sources.model import Sample
from attnaudit.sources.weights import read_weights

_FILE = "midisim_small_pre_trained_model_2_epochs_43117_steps_0.3148_loss_0.9229_acc.pth"
_CONFIG = {"tokens": 386, "width": 512, "layers": 8, "heads": 8}
LENGTHS, PITCHES, MASK = 128, 256, 384
#: A chord: the time since the last one, the length of its notes, and their pitches as in MIDI. A note is a chord, too.
Chord = tuple[int, int, tuple[int, ...]]
_PIECES, _TOKENS = 16, 256
_MAJOR = (0, 2, 4, 5, 7, 9, 11)
_UP_AND_DOWN = (0, 1, 2, 3, 4, 5, 6, 7, 6, 5, 4, 3, 2, 1)
_MASKED, _LEAST_RIGHT = 0.15, 0.9

build = build_from(lambda config: NoteEncoder(**config))


def convert(files: Mapping[str, Path], folder: Path) -> tuple[str, ...]:
    """Write config and weights; angles of positions follow from the architecture."""
    stored = read_weights(files[_FILE])
    weights = {_name(name): own.clone() for name, own in stored.items() if not name.endswith("inv_freq")}
    (folder / CONFIG).write_text(json.dumps(_CONFIG))
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
    return ()


def _name(name: str) -> str:
    """Our name of a weight: even blocks of the file attend, odd ones are networks."""
    block = re.fullmatch(r"attn_layers\.layers\.(\d+)\.(.+)", name)
    if block is None:
        return {
            "token_emb.emb.weight": "embedding.weight",
            "attn_layers.final_norm.gamma": "norm.gamma",
            "to_logits.weight": "to_logits.weight",
        }[name]
    layer, odd = divmod(int(block[1]), 2)
    if odd:
        inside = {"0.0.gamma": "0.gamma"}.get(block[2]) or block[2].replace("1.ff.0.0.", "1.").replace("1.ff.2.", "3.")
        return f"network.{layer}.{inside}"
    return f"attention.{layer}.{block[2].replace('0.0.gamma', 'norm.gamma').removeprefix('1.')}"


def tokens(chords: Sequence[Chord]) -> Int[Tensor, "1 length"]:
    """One token for the time of a chord, and two for each of its notes."""
    found = []
    for time, length, pitches in chords:
        found += [time, *(token for pitch in pitches for token in (LENGTHS + length, PITCHES + pitch))]
    return torch.tensor([found])


def degree(key: int, step: int) -> int:
    """The pitch of a step of the major scale on a key, whose first step is 0."""
    octave, place = divmod(step, len(_MAJOR))
    return key + 12 * octave + _MAJOR[place]


def piece(seed: int) -> list[Chord]:
    """A row of triads in one key, broken or not, with runs of the scale in between."""
    source = np.random.default_rng(seed)
    key, beat = 48 + int(source.integers(12)), int(source.integers(6, 20))
    chords: list[Chord] = []
    while tokens(chords).numel() < _TOKENS:
        root = int(source.choice((0, 3, 4, 5, 1)))
        triad = tuple(degree(key, root + step) for step in (4, 2, 0))
        kind = source.choice(("whole", "broken", "run"))
        if kind == "whole":
            chords.append((2 * beat, 2 * beat, triad))
        elif kind == "broken":
            chords += [(beat, beat, (pitch,)) for pitch in reversed(triad)]
        else:
            start, way = int(source.integers(7, 14)), int(source.choice((-1, 1)))
            chords += [(beat // 2, beat // 2, (degree(key, start + way * step),)) for step in range(5)]
    return chords


def samples(folder: Path) -> list[Sample]:
    """Pieces in different keys and tempi."""
    return [Sample(f"piece-{seed}", {"tokens": tokens(piece(seed))[:, :_TOKENS]}) for seed in range(_PIECES)]


def check(folder: Path) -> None:
    """Check that the model guesses masked tokens of a scale, up and down again and again, and of a row of chords.

    Raises:
        WeightsError: it does not.
    """
    network, source = build(folder, None), torch.Generator().manual_seed(0)
    scale = [(8, 8, (degree(60, step),)) for step in _UP_AND_DOWN] * 7
    cadence = [(16, 16, tuple(degree(60, root + step) for step in (4, 2, 0))) for root in (0, 3, 4, 0)] * 10
    for name, music in (("scale", tokens(scale)), ("row of chords", tokens(cadence))):
        masked = torch.rand(music.shape, generator=source) < _MASKED
        with torch.no_grad():
            guessed = network(music.masked_fill(masked, MASK)).argmax(-1)
        right = float((guessed == music)[masked].float().mean())
        if right < _LEAST_RIGHT:
            raise WeightsError(f"It guesses {right:.0%} of the masked tokens of a {name}, but the trained model all.")


MIDISIM = AtlasModel(
    name="midisim",
    field="music",
    architecture="encoder with rotary positions, 8 layers, 8 heads, width 512",
    licence="Apache-2.0",
    megabytes=99,
    files=(
        KnownFile(
            _FILE,
            "02645aac7b11b973d8f2d8fdc2d87329e9b59f80c1ab93777b2169ec7ed87bbe",
            (PackagePart("midisim==26.1.18", f"midisim/models/{_FILE}"),),
        ),
    ),
    convert=convert,
    check=check,
    build=build,
    samples=samples,
    reads="notes of piano music",
)
