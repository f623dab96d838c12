"""Noise in sentences: what it does, and that it follows from seed, noise, rate and sentence alone."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnaudit.errors import UsageError
from attnaudit.robustness.conditions import noise_conditions
from attnaudit.robustness.noises import NOISES, misspelt, noisy

SENTENCE = "a gripping movie , played with performances that are all understated and touching ."
WORDS = SENTENCE.split()


def changed(found):
    return {place for place, (word, other) in enumerate(zip(WORDS, found.split(), strict=True)) if word != other}


@pytest.mark.parametrize("name", NOISES)
def test_the_same_seed_gives_the_same_sentence(name):
    assert noisy(SENTENCE, name, 0.5, 3, 0) == noisy(SENTENCE, name, 0.5, 3, 0)
    assert len({noisy(SENTENCE, name, 0.5, 3, seed) for seed in range(8)}) > 1
    assert len({noisy(SENTENCE, name, 0.5, number, 0) for number in range(8)}) > 1


@pytest.mark.parametrize("name", NOISES)
def test_a_rate_of_nothing_changes_nothing(name):
    assert noisy(SENTENCE, name, 0.0, 0, 0) == SENTENCE


def test_swapped_words_are_the_replacement_and_the_others_stay():
    assert noisy(SENTENCE, "word-swap", 1.0, 0, 0) == " ".join(["AAA"] * len(WORDS))
    found = noisy(SENTENCE, "word-swap", 0.5, 0, 0).split()
    assert 0 < found.count("AAA") < len(WORDS)
    assert all(own in ("AAA", word) for own, word in zip(found, WORDS, strict=True))


def test_deleted_words_leave_the_order_and_one_word_at_least():
    assert noisy(SENTENCE, "word-deletion", 1.0, 0, 0) == WORDS[0]
    found = iter(WORDS)
    assert all(word in found for word in noisy(SENTENCE, "word-deletion", 0.4, 0, 0).split())


@pytest.mark.parametrize("name", ["word-swap", "typos"])
def test_a_higher_rate_hits_the_same_words_and_others(name):
    for number in range(20):
        few, many = (noisy(SENTENCE, name, rate, number, 0) for rate in (0.2, 0.6))
        assert changed(few) <= changed(many)
        assert all(few.split()[place] == many.split()[place] for place in changed(few))


def test_noises_hit_other_words_of_a_sentence():
    long = {place for place, word in enumerate(WORDS) if len(word) > 1}  # others have no typing errors
    swapped, misspelled = (
        [changed(noisy(SENTENCE, name, 0.5, number, 0)) & long for number in range(20)]
        for name in ("word-swap", "typos")
    )
    assert sum(one != other for one, other in zip(swapped, misspelled, strict=True)) > 15


def test_the_share_of_words_is_the_rate():
    words = "word " * 20_000
    assert noisy(words, "word-swap", 0.3, 0, 0).split().count("AAA") / 20_000 == pytest.approx(0.3, abs=0.01)


@given(st.text(st.characters(categories=["L"]), min_size=2, max_size=12), st.integers(0, 1000))
def test_a_typing_error_is_one_letter_or_two_neighbours(word, seed):
    found = misspelt(word, random.Random(seed))
    assert found != word
    assert abs(len(found) - len(word)) <= 1
    if len(found) == len(word):
        places = [place for place, (a, b) in enumerate(zip(word, found, strict=True)) if a != b]
        assert len(places) <= 2
        assert len(places) < 2 or (places[1] == places[0] + 1 and sorted(found) == sorted(word))


@pytest.mark.parametrize("word", ["a", ",", "...", "42"])
def test_a_word_without_two_letters_has_no_typing_error(word):
    assert all(misspelt(word, random.Random(seed)) == word for seed in range(20))


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.5, float("nan")])
def test_a_rate_is_a_share_of_words(rate):
    with pytest.raises(UsageError, match="--rates must be shares of the words"):
        noise_conditions(["typos"], [rate])


def test_an_unknown_noise_is_said_with_similar_names():
    with pytest.raises(UsageError, match="word-swap"):
        noise_conditions(["word-swop"], [0.1])


def test_rates_that_differ_have_names_that_differ():
    words = [condition.words for condition in noise_conditions(["word-swap"], [0.1, 0.1004, 0.07])]
    assert words == [f"word-swap, {share} % of the words" for share in ("10", "10.04", "7")]
