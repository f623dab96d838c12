"""A piano from formulas: strings that are struck, ring and are damped, in a room.

The partials of a stiff string are too high, f_k = k f √(1 + B k²), and B of piano strings is known for every key
(Rigaud, David & Daudet 2013). The sound falls fast at first and then slowly (Weinreich 1977). How fast, how loud
partials are and the room were chosen by trial, so that Transkun hears most notes; they are no model of an instrument.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from jaxtyping import Float

from attnaudit.sources.atlas.midisim import Chord

RATE = 44_100
#: Seconds of a unit of time.
UNIT = 0.04
_PARTIALS, _HIGHEST = 16, 6000.0
#: Seconds in which a damper lets the sound fall to 1/e, those in which the room does, and how loud its echoes are.
_DAMPER, _ROOM, _ECHO = 0.05, 0.25, 0.3


def onsets(chords: Sequence[Chord]) -> list[float]:
    """When chords begin, in seconds."""
    return [float(time) * UNIT for time in np.cumsum([time for time, _, _ in chords])]


def play(chords: Sequence[Chord], seconds: float) -> Float[np.ndarray, " samples"]:
    """The first seconds of chords in a room."""
    dry = np.zeros(int(seconds * RATE))
    for begin, (_, length, pitches) in zip(onsets(chords), chords, strict=True):
        place = int(begin * RATE)
        for pitch in pitches if place < len(dry) else ():
            own = tone(pitch, length)[: len(dry) - place]
            dry[place : place + len(own)] += own
    return _in_a_room(dry)


@cache
def tone(pitch: int, length: int) -> Float[np.ndarray, " samples"]:
    """A key that is held for so many units of time; pitches are numbered as in MIDI."""
    held = length * UNIT
    moments = np.arange(int((held + 6 * _DAMPER) * RATE)) / RATE
    hertz = 440 * 2 ** ((pitch - 69) / 12)
    stiff = math.exp(0.0926 * pitch - 13.64) + math.exp(-0.0847 * pitch - 5.82)
    sound = np.zeros(len(moments))
    for number in range(1, _PARTIALS + 1):
        partial = number * hertz * math.sqrt(1 + stiff * number**2)
        if partial > _HIGHEST:
            break
        falls = 0.5 + partial / 1500 + hertz / 900
        envelope = 0.8 * np.exp(-3 * falls * moments) + 0.2 * np.exp(-0.5 * falls * moments)
        sound += number**-1.5 * envelope * np.sin(2 * math.pi * partial * moments)
    return np.asarray(sound * np.exp(-np.maximum(moments - held, 0) / _DAMPER))


def _in_a_room(dry: Float[np.ndarray, " samples"]) -> Float[np.ndarray, " samples"]:
    """The sound with its echoes, which are noise that dies away."""
    moments = np.arange(int(5 * _ROOM * RATE)) / RATE
    room = np.random.default_rng(0).normal(size=len(moments)) * np.exp(-moments / _ROOM)
    room *= _ECHO / np.linalg.norm(room)
    room[0] += 1.0
    length = len(dry) + len(room)  # so that the end does not echo in the beginning
    heard: np.ndarray = np.fft.irfft(np.fft.rfft(dry, length) * np.fft.rfft(room, length), length)[: len(dry)]
    return heard
