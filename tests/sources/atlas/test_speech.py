"""Synthesised speech has the resonances and the pitch that it was given."""

import numpy as np

from attnaudit.sources.atlas.speech import RATE, SOUNDS, babble, speak


def spectrum(sound):
    power = np.abs(np.fft.rfft(sound * np.hanning(len(sound)))) ** 2
    return np.fft.rfftfreq(len(sound), 1 / RATE), power


def near(hertz, power, place):
    return power[(hertz > place - 120) & (hertz < place + 120)].mean()


def test_a_vowel_is_loud_at_its_formants_and_quiet_between_them():
    for vowel in ("iy", "aa", "uw"):
        hertz, power = spectrum(speak([(vowel, 1.0)], pitch=100))
        first, second, third, _ = SOUNDS[vowel]
        assert near(hertz, power, second) > 3 * near(hertz, power, (second + third) / 2), vowel
        assert near(hertz, power, first) > near(hertz, power, third), vowel


def test_a_smaller_speaker_has_higher_formants():
    small, tall = (spectrum(speak([("iy", 1.0)], pitch=100, size=size)) for size in (0.8, 1.0))
    place = SOUNDS["iy"][1] / 0.8
    assert near(*small, place) / near(*small, place * 0.8) > near(*tall, place) / near(*tall, place * 0.8)


def test_a_pause_is_silent():
    sound = speak([("aa", 0.3), (" ", 0.6), ("aa", 0.3)], pitch=120)
    middle = sound[int(0.55 * RATE) : int(0.7 * RATE)]
    assert np.abs(middle).max() < 0.02 * np.abs(sound).max()


def test_babble_has_its_length_and_depends_on_the_seed_alone():
    assert len(babble(2.0, 0)) == 2 * RATE
    assert np.array_equal(babble(1.0, 3), babble(1.0, 3))
    assert not np.array_equal(babble(1.0, 3), babble(1.0, 4))
