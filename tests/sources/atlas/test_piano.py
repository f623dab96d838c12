"""A piano from formulas: tones have the partials of stiff strings, fall, are damped, and come when they are played."""

import numpy as np
import pytest

from attnaudit.sources.atlas import piano
from attnaudit.sources.atlas.piano import RATE, UNIT, onsets, play, tone

SECOND = round(1 / UNIT)


def spectrum(sound):
    return np.fft.rfftfreq(len(sound), 1 / RATE), np.abs(np.fft.rfft(sound * np.hanning(len(sound))))


def test_partials_are_those_of_a_stiff_string():
    hertz, strength = spectrum(tone(69, SECOND)[:RATE])
    stiff = np.exp(0.0926 * 69 - 13.64) + np.exp(-0.0847 * 69 - 5.82)
    for number in (1, 2, 5, 8):
        near = np.abs(hertz - 440 * number) < 100
        loudest = hertz[near][strength[near].argmax()]
        assert loudest == pytest.approx(440 * number * np.sqrt(1 + stiff * number**2), abs=2)


def test_high_partials_fall_faster():
    sound = tone(60, 2 * SECOND)
    early, late = (spectrum(sound[start : start + RATE // 4]) for start in (0, RATE))

    def share(found):
        hertz, strength = found
        return strength[hertz > 1500].sum() / strength.sum()

    assert share(late) < 0.7 * share(early)


def test_a_key_that_is_let_go_is_damped():
    sound = tone(60, SECOND)
    held, gone = (np.abs(sound[int(when * RATE) :][: RATE // 50]).max() for when in (0.95, 1.2))
    assert gone < 0.05 * held


def test_chords_begin_when_they_are_played_and_end_with_the_recording():
    chords = [(SECOND, SECOND // 2, (60,)), (SECOND, SECOND, (62, 65)), (SECOND, 1, (67,)), (9 * SECOND, 1, (50,))]
    assert onsets(chords) == pytest.approx([1.0, 2.0, 3.0, 12.0])
    sound = play(chords, 3.5)
    assert len(sound) == int(3.5 * RATE)
    assert np.abs(sound[:RATE]).max() < 1e-9
    assert np.abs(sound[RATE : RATE + 2000]).max() > 0.1


def test_a_room_adds_echoes_and_keeps_what_is_played(monkeypatch):
    wet = play([(0, 5, (60,))], 2.0)
    monkeypatch.setattr(piano, "_ECHO", 0.0)
    dry = play([(0, 5, (60,))], 2.0)
    own = tone(60, 5)
    assert np.allclose(dry[: len(own)], own, atol=1e-9)
    assert np.abs(dry[RATE:]).max() < 1e-9 < 1e-4 < np.abs(wet[RATE : RATE + 9000]).max()
