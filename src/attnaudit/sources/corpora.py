"""Text to train on and text to test on: a folder with both, WikiText, or one file of which the end is held out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from attnaudit.errors import InputError
from attnaudit.numerics.digest import content_digest
from attnaudit.sources.texts import read_text
from attnaudit.sources.words import words_of

#: Names of training and test files, the first pair that is there. The last is WikiText without its training part: the
#: articles of its raw test part are learned, those of its validation part, which are others, tested.
PAIRS = (
    ("train*.txt", "test*.txt"),
    ("wiki.train.raw", "wiki.test.raw"),
    ("wiki.train.tokens", "wiki.test.tokens"),
    ("wiki.test.raw", "valid.txt"),
)
#: Of a single file, this share of the lines, the last ones, is tested.
HELD_OUT = 0.1


@dataclass(frozen=True)
class Corpus:
    """One half of a data set of text."""

    place: Path
    text: str

    def words(self) -> Iterator[str]:
        """Its words, line by line."""
        return words_of(self.text)

    @cached_property
    def _count(self) -> int:
        return sum(1 for _ in self.words())

    def __len__(self) -> int:
        return self._count

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the text."""
        return content_digest([self.text.encode()])

    def first(self, lines: int | None) -> Corpus:
        """Its first lines that have words, all if None."""
        return self if lines is None else Corpus(self.place, "\n".join(_full_lines(self.text)[:lines]))


def training_and_test_text(place: Path) -> tuple[Corpus, Corpus]:
    """Both halves of a text.

    Raises:
        InputError: there is no text, or none to hold out.
    """
    if place.is_dir():
        return _of_folder(place)
    lines = _full_lines(read_text(place))
    cut = len(lines) - max(1, round(HELD_OUT * len(lines)))
    if cut < 1:
        raise InputError(f"{place} has a single line: a text to train on needs another one to test on.")
    return Corpus(place, "\n".join(lines[:cut])), Corpus(place, "\n".join(lines[cut:]))


def _of_folder(folder: Path) -> tuple[Corpus, Corpus]:
    for names in PAIRS:
        train, test = (sorted(folder.glob(name)) for name in names)
        if train and test:
            halves = ("\n".join(read_text(file) for file in files) for files in (train, test))
            return Corpus(train[0], next(halves)), Corpus(test[0], next(halves))
    wanted = ", or ".join(f"{train} and {test}" for train, test in PAIRS)
    raise InputError(f"{folder} has no text to train on: it needs {wanted}.")


def _full_lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]
