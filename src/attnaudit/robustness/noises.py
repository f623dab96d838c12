"""Noise in the words of a sentence: words swapped for one that means nothing, deleted, or misspelt.

Whether a word is hit follows from seed, noise, sentence and word alone, and not from the rate: a higher rate hits the
same words and others.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from attnaudit.numerics.randomness import derived_seed

#: The word that replaces others (Teo & Nguyen 2024, word swap).
REPLACEMENT = "AAA"
#: To be increased when the same seed gives a different sentence.
VERSION = 2
_SHORTEST = 2


def word_swap(words: Sequence[str], hit: Sequence[bool], draw: random.Random) -> list[str]:
    """Each word that is hit becomes "AAA"."""
    return [REPLACEMENT if struck else word for word, struck in zip(words, hit, strict=True)]


def word_deletion(words: Sequence[str], hit: Sequence[bool], draw: random.Random) -> list[str]:
    """Each word that is hit is left out; if all are, the first stays."""
    return [word for word, struck in zip(words, hit, strict=True) if not struck] or list(words[:1])


def typos(words: Sequence[str], hit: Sequence[bool], draw: random.Random) -> list[str]:
    """Each word that is hit gets one typing error, if it has two letters at least."""
    # One error is drawn for every word, hit or not, so that the errors of the others do not depend on the rate.
    wrong = [misspelt(word, draw) for word in words]
    return [other if struck else word for word, other, struck in zip(words, wrong, hit, strict=True)]


def misspelt(word: str, draw: random.Random) -> str:
    """Two neighbouring characters exchanged, one left out, one doubled, or one replaced by a random letter.

    Drawn again while that gives the same word, as where the two are alike.
    """
    if len(word) < _SHORTEST or not any(character.isalpha() for character in word):
        return word
    while (wrong := _with_error(word, draw)) == word:
        pass
    return wrong


def _with_error(word: str, draw: random.Random) -> str:
    place, kind, letter = draw.random(), draw.randrange(4), draw.choice(string.ascii_lowercase)
    if kind == 0:
        at = int(place * (len(word) - 1))
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    at = int(place * len(word))
    middle = ("", word[at] * 2, letter)[kind - 1]
    return word[:at] + middle + word[at + 1 :]


@dataclass(frozen=True)
class Noise:
    """A noise by name: what it does in words, and to the words that are hit."""

    name: str
    text: str
    apply: Callable[[Sequence[str], Sequence[bool], random.Random], list[str]]


NOISES: Mapping[str, Noise] = {
    noise.name: noise
    for noise in (
        Noise("word-swap", f"words become {REPLACEMENT} (Teo & Nguyen 2024)", word_swap),
        Noise("word-deletion", "words are left out", word_deletion),
        Noise("typos", "words get a typing error: letters exchanged, lost, doubled or wrong", typos),
    )
}


def noisy(sentence: str, name: str, rate: float, number: int, seed: int) -> str:
    """Sentence `number` of a data set with noise: each of its words, split at white space, is hit at this rate."""
    words = sentence.split()
    chances = random.Random(derived_seed(seed, name, number, "hit"))
    hit = [chances.random() < rate for _ in words]
    return " ".join(NOISES[name].apply(words, hit, random.Random(derived_seed(seed, name, number, "change"))))
