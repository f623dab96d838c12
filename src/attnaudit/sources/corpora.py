"""Training and test text: a folder with both, WikiText, or one file whose last lines are held out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from attnaudit.errors import InputError
from attnaudit.numerics.digest import content_digest
from attnaudit.sources.text_documents import read_text
from attnaudit.sources.words import words_of

#: Names of training and test files; the first pair that exists is used. The last pair is for WikiText without its
#: training part: it trains on the raw test part and tests on the validation part, which has other articles.
PAIRS = (
    ("train*.txt", "test*.txt"),
    ("wiki.train.raw", "wiki.test.raw"),
    ("wiki.train.tokens", "wiki.test.tokens"),
    ("wiki.test.raw", "valid.txt"),
)
#: The share of the lines of a single file, at its end, that is held out for testing.
HELD_OUT = 0.1


@dataclass(frozen=True)
class Corpus:
    """The training or test half of a text data set."""

    path: Path
    text: str

    def words(self) -> Iterator[str]:
        """The words, line by line."""
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
        """The first lines that contain words; all if None."""
        return self if lines is None else Corpus(self.path, "\n".join(_full_lines(self.text)[:lines]))


def training_and_test_text(path: Path) -> tuple[Corpus, Corpus]:
    """The training and the test half of a text.

    Raises:
        InputError: the text is missing or too short to hold some out.
    """
    if path.is_dir():
        return _of_folder(path)
    lines = _full_lines(read_text(path))
    cut = len(lines) - max(1, round(HELD_OUT * len(lines)))
    if cut < 1:
        raise InputError(f"{path} has only one line: training needs at least one more for testing.")
    return Corpus(path, "\n".join(lines[:cut])), Corpus(path, "\n".join(lines[cut:]))


def _of_folder(folder: Path) -> tuple[Corpus, Corpus]:
    for names in PAIRS:
        train, test = (sorted(folder.glob(name)) for name in names)
        if train and test:
            halves = ("\n".join(read_text(file) for file in files) for files in (train, test))
            return Corpus(train[0], next(halves)), Corpus(test[0], next(halves))
    wanted = ", or ".join(f"{train} and {test}" for train, test in PAIRS)
    raise InputError(f"{folder} has no training and test text: it needs {wanted}.")


def _full_lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]
