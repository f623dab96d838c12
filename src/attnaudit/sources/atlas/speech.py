"""Speech from formulas: a buzzing source, shaped by resonances that glide from sound to sound.

A vowel is told by its formants, the first three resonances of the mouth (Peterson & Barney 1952). Here each is a
resonator of two poles, and a sound is a row of targets that they glide through (Klatt 1980, the cascade branch). There
are only voiced sounds without hiss: enough for a sentence such as "We are all away."
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

RATE = 16_000
#: Formants in Hz and loudness of sounds.
SOUNDS: dict[str, tuple[float, float, float, float]] = {
    "iy": (280, 2250, 2950, 1.0),
    "ih": (400, 1950, 2550, 1.0),
    "ey": (450, 2050, 2650, 1.0),
    "eh": (550, 1800, 2500, 1.0),
    "ae": (680, 1700, 2400, 1.0),
    "aa": (740, 1100, 2450, 1.0),
    "ao": (580, 880, 2400, 1.0),
    "ow": (500, 950, 2350, 1.0),
    "uw": (310, 900, 2250, 0.9),
    "ah": (600, 1200, 2400, 1.0),
    "er": (450, 1300, 1650, 0.9),
    "w": (290, 620, 2200, 0.6),
    "y": (270, 2300, 3050, 0.6),
    "r": (330, 1080, 1500, 0.6),
    "l": (350, 1000, 2700, 0.6),
    "m": (260, 1000, 2200, 0.35),
    "n": (260, 1500, 2500, 0.35),
    "g": (220, 1900, 2150, 0.05),
    "b": (220, 800, 2200, 0.05),
    "d": (220, 1700, 2600, 0.05),
    " ": (400, 1400, 2400, 0.0),
}
VOWELS = ("iy", "ih", "ey", "eh", "ae", "aa", "ao", "ow", "uw", "ah", "er")
CONSONANTS = ("w", "y", "r", "l", "m", "n", "g", "b", "d")
PAUSE = " "
_HIGHER = (3500.0, 4500.0)
_WIDTHS = (70.0, 90.0, 130.0, 220.0, 300.0)
_STEP = RATE // 200


def speak(sounds: Sequence[tuple[str, float]], pitch: float, size: float = 1.0) -> Float[np.ndarray, " samples"]:
    """Sounds with their lengths in seconds, in a voice of that pitch in Hz; a smaller speaker has higher formants.

    The pitch falls towards the end by a third and wavers a little.
    """
    tracks = _tracks(sounds)
    moments = np.arange(len(tracks) * _STEP) / RATE
    progress = moments / moments[-1]
    hertz = pitch * (1.1 - 0.35 * progress + 0.03 * np.sin(2 * math.pi * 4 * moments))
    source = _glottis(np.cumsum(hertz) / RATE)
    formants = np.column_stack([tracks[:, :3], np.tile(_HIGHER, (len(tracks), 1))]) / size
    loudness = np.interp(np.arange(len(source)), np.arange(len(tracks)) * _STEP, tracks[:, 3])
    sound = source * loudness
    for formant, width in zip(formants.T, _WIDTHS, strict=True):
        sound = _resonance(sound, formant, width)
    radiated = np.diff(sound, prepend=0.0)  # what leaves the lips
    loudest: float = np.abs(radiated).max()
    return np.asarray(radiated * 0.7 / loudest)


def babble(seconds: float, seed: int) -> Float[np.ndarray, " samples"]:
    """Syllables at random, in phrases with pauses, in a voice of its own: speech without words."""
    source = np.random.default_rng(seed)
    sounds: list[tuple[str, float]] = []
    while sum(length for _, length in sounds) < seconds:
        for _ in range(int(source.integers(3, 9))):
            sounds.append((str(source.choice(CONSONANTS)), float(source.uniform(0.06, 0.12))))
            sounds.append((str(source.choice(VOWELS)), float(source.uniform(0.08, 0.22))))
        sounds.append((PAUSE, float(source.uniform(0.1, 0.5))))
    return speak(sounds, float(source.uniform(90, 240)), float(source.uniform(0.85, 1.1)))[: int(seconds * RATE)]


def _tracks(sounds: Sequence[tuple[str, float]]) -> Float[np.ndarray, "steps 4"]:
    """Formants and loudness every five milliseconds: each sound holds for half of its time and glides in the rest."""
    places, targets, now = [], [], 0.0
    for name, seconds in sounds:
        places += [now + 0.25 * seconds, now + 0.75 * seconds]
        targets += [SOUNDS[name]] * 2
        now += seconds
    steps = np.arange(int(now * RATE) // _STEP) * _STEP / RATE
    return np.column_stack([np.interp(steps, places, column) for column in np.array(targets).T])


def _glottis(turns: Float[np.ndarray, " samples"]) -> Float[np.ndarray, " samples"]:
    """The flow of air: it swells for four tenths of a cycle, falls faster, and rests (Rosenberg 1971)."""
    phase = turns % 1.0
    opening = 0.5 - 0.5 * np.cos(math.pi * phase / 0.4)
    closing = np.cos(math.pi / 2 * (phase - 0.4) / 0.16)
    flow: np.ndarray = np.where(phase < 0.4, opening, np.where(phase < 0.56, closing, 0.0))
    return flow


def _resonance(
    sound: Float[np.ndarray, " samples"], hertz: Float[np.ndarray, " steps"], width: float
) -> Float[np.ndarray, " samples"]:
    """y[t] = (1 - b - c) x[t] + b y[t-1] + c y[t-2], with c = -exp(-2πB/R) and b = 2 exp(-πB/R) cos(2πF/R)."""
    from scipy.signal import lfilter  # importing it takes a second, which other models need not wait

    state, pieces = np.zeros(2), []
    shrink = math.exp(-math.pi * width / RATE)
    for step, own in enumerate(hertz):
        second, first = -(shrink**2), 2 * shrink * math.cos(2 * math.pi * own / RATE)
        piece, state = lfilter(
            [1 - first - second], [1, -first, -second], sound[step * _STEP : (step + 1) * _STEP], zi=state
        )
        pieces.append(piece)
    return np.concatenate(pieces)
