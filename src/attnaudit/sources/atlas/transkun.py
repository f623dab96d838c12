"""Transkun, which writes down what a piano plays, by the score of every interval in which a key may be held.

Attention runs among the rows of each moment, which are bands of frequency, pedals and keys, and among the moments of
each row. To capture, these are windows, as in Swin. A recording of twelve seconds is one input, in which a head has 67
windows of 149 rows, or 149 windows of 67 moments, where 64 are needed for a verdict. Eight of them, evenly spaced, are
kept: a head's number is their mean. Predictors of velocities and of times between frames are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.errors import WeightsError
from attnaudit.sources.atlas.architectures.transkun import Transkun
from attnaudit.sources.atlas.building import CONFIG, build_from
from attnaudit.sources.atlas.entry import AtlasModel, KnownFile, PackagePart
from attnaudit.sources.atlas.folders import write_model
from attnaudit.sources.atlas.midisim import Chord, degree, piece
from attnaudit.sources.atlas.piano import RATE, UNIT, onsets, play
from attnaudit.sources.model import Sample

_WEIGHTS, _SETTINGS = "transkun-2.0.pt", "transkun-2.0.conf"
#: Two pedals, by numbers of their own, and the keys of a piano.
EVENTS = (-64, -67, *range(21, 109))
_PEDALS = 2
_PIECES, _SECONDS = 16, 12.0
#: Parts of names in the file, and ours.
_NAMES = {
    r"framewiseFeatureExtractor\.spectrogramExtractor\.winGen\.sigma": "spectrogram.width",
    r"framewiseFeatureExtractor\.spectrogramExtractor\.winGen\.center": "spectrogram.centre",
    r"scorer\.map\.0": "ends",
    r"backbone\.": "",
    r"posEmbedBuilderAttnTF": "heard_positions",
    r"posEmbedBuilderAttnTE": "event_positions",
    r"posEmbedBuilder": "band_positions",
    r"\.proj\.": ".turn.",
    r"inputConv": "first",
    r"upConv1dSkip": "spread",
    r"encoderLayers": "layers",
    r"mhaBlock(.)\.scale": r"block\1.scale_attention",
    r"fnnBlock(.)\.scale": r"block\1.scale_network",
    r"fnnBlock(.)\.module": r"block\1.network",
    r"mhaBlock(.)\.module": r"block\1",
    r"blockF": "rows",
    r"blockT": "moments",
    r"q_proj_weight": "query.weight",
    r"k_proj_weight": "key.weight",
    r"v_proj_weight": "value.weight",
    r"out_proj": "out",
    r"mlp": "network",
    r"network\.3": "network.2",  # behind a dropout, which has a number there
}
#: Not read: what follows from the settings, and what says more of a note than when it is held.
_LEFT_OUT = re.compile(r".*(freq2mels|\.win)|(velocityPredictor|refinedOFPredictor)\..*")
#: The trained model hears all 20 notes in this key, and 79 of 100 in five others, 11 to 19 in each, since the tones are
#: not those of a piano. Six untrained models hear none or one.
_LEAST_RIGHT = 0.6
_TONIC, _CADENCE = 53, (0, 3, 4, 0)

build = build_from(lambda config: Transkun(**config))


def convert(files: Mapping[str, Path], folder: Path) -> tuple[str, ...]:
    """Write config and weights; projections of heads are stored in the file as columns."""
    stored = torch.load(files[_WEIGHTS], map_location="cpu", weights_only=True)["state_dict"]
    settings = json.loads(files[_SETTINGS].read_text("utf-8"))["Model"]["config"]
    weights = {
        _name(name): own.T if name.endswith("_proj_weight") else own
        for name, own in stored.items()
        if not _LEFT_OUT.fullmatch(name)
    }
    write_model(folder, _config(settings), weights)
    return ()


def _name(name: str) -> str:
    """Our name of a weight."""
    for theirs, ours in _NAMES.items():
        name = re.sub(theirs, ours, name)
    # Convolutions and norms of the file have dropouts between them, which ours have not.
    return re.sub(r"downConv\.(\d+)", lambda found: f"shrink.{int(found[1]) - int(found[1]) // 4}", name)


def _config(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of our network."""
    spectrogram = {
        **{"rate": settings["fs"], "hop": settings["hopSize"], "window": settings["windowSize"]},
        **{"bands": settings["n_mels"], "lowest": settings["f_min"], "highest": settings["f_max"]},
        **{"windows": settings["nExtraWins"]},
    }
    channels = settings["baseSize"]
    return {
        **{"spectrogram": spectrogram, "events": EVENTS, "channels": channels, "layers": settings["nLayers"]},
        **{"heads": settings["nHead"], "inner": 4 * channels * settings["hiddenFactor"]},
    }


def recording(chords: list[Chord], seconds: float) -> Float[Tensor, "1 samples"]:
    """The sound of chords on a piano."""
    return torch.from_numpy(play(chords, seconds)).float()[None]


def samples(folder: Path) -> list[Sample]:
    """Recordings of pieces in different keys and tempi."""
    return [Sample(f"piece-{seed}", {"sound": recording(piece(seed), _SECONDS)}) for seed in range(_PIECES)]


def check(folder: Path) -> None:
    """Check that the model hears which keys are held in a scale and in a row of chords.

    Of the scores of all keys, from the beginning of a chord of n notes to its end, the n highest must be theirs.

    Raises:
        WeightsError: they are not.
    """
    network, hop = build(folder, None), json.loads((folder / CONFIG).read_text("utf-8"))["spectrogram"]["hop"]
    scale: list[Chord] = [(8, 8, (degree(_TONIC, step),)) for step in range(8)]
    cadence: list[Chord] = [(16, 16, tuple(degree(_TONIC, root + step) for step in (0, 2, 4))) for root in _CADENCE]
    chords = [*scale, *cadence]
    with torch.no_grad():
        scores = network(sound=recording(chords, sum(time for time, _, _ in chords) * UNIT + 1))[0, _PEDALS:]
    right = notes = 0
    for begin, (_, length, pitches) in zip(onsets(chords), chords, strict=True):
        first, last = (round(moment * RATE / hop) for moment in (begin, begin + length * UNIT))
        near = scores[:, last - 2 : last + 3, first - 1 : first + 2].amax((1, 2))  # ends are heard a frame off
        best = near.topk(len(pitches)).indices + EVENTS[_PEDALS]
        right, notes = right + len({*best.tolist()} & {*pitches}), notes + len(pitches)
    if right < _LEAST_RIGHT * notes:
        raise WeightsError(f"It hears {right} of {notes} notes of a piano, but the trained model all.")


TRANSKUN = AtlasModel(
    name="transkun",
    field="music",
    architecture="attention over time and pitch in turn, 6 layers, 8 + 8 heads, width 256",
    licence="MIT",
    megabytes=51,
    files=tuple(
        KnownFile(name, sha256, (PackagePart("transkun==2.0.1", f"transkun/pretrained/{path}"),))
        for name, path, sha256 in (
            (_WEIGHTS, "2.0.pt", "50a80010effc2a59ffcd068a95cd2b29bd7f23a27a3515bc3ccd209c89a3d44c"),
            (_SETTINGS, "2.0.conf", "d3d989214eb148230ee5df476d994dcde6af595904d3f968f1221d2e3bea5ac6"),
        )
    ),
    convert=convert,
    check=check,
    build=build,
    samples=samples,
    reads="44.1 kHz sound of a piano",
)
