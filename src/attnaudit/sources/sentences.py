"""Sentences with class labels: tab-separated text whose first line names the columns `sentence` and `label`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from jaxtyping import Int64
from torch import Tensor

from attnaudit.display import counted
from attnaudit.errors import InputError
from attnaudit.numerics.digest import content_digest
from attnaudit.sources.text_documents import read_text

_SENTENCE, _LABEL = "sentence", "label"
#: No data set has more classes; a larger label is probably an index or a year.
_MOST_CLASSES = 10_000
#: How much of a line an error shows.
_SHOWN = 40


@dataclass(frozen=True)
class LabelledSentences:
    """Sentences and their class numbers.

    Of sentences that were selected from others, `selected_classes` is the number of classes of all of them.
    """

    path: Path
    sentences: tuple[str, ...]
    labels: Int64[Tensor, "sentences"]
    selected_classes: int | None = None

    def __len__(self) -> int:
        return len(self.sentences)

    @property
    def classes(self) -> int:
        """One more than the largest class number."""
        return int(self.labels.max()) + 1 if self.selected_classes is None else self.selected_classes

    @cached_property
    def fingerprint(self) -> str:
        """A hash of labels and sentences."""
        return content_digest([self.labels.numpy().tobytes(), "\n".join(self.sentences).encode()])

    def select(self, indices: Sequence[int]) -> LabelledSentences:
        """The sentences with these indices, of as many classes as there are here."""
        chosen = tuple(self.sentences[index] for index in indices)
        return LabelledSentences(self.path, chosen, self.labels[list(indices)], self.classes)

    def evenly_spaced(self, count: int | None) -> LabelledSentences:
        """`count` evenly spaced sentences; all if None."""
        if count is None or count >= len(self):
            return self
        return self.select([number * len(self) // count for number in range(count)])


def read_sentences(path: Path) -> LabelledSentences:
    """The sentences of a file, which may have further columns.

    Raises:
        InputError: there is no header, it names a column twice, a line has other columns, no sentence or no class
            number, or all are of a class.
    """
    if path.is_dir():
        raise InputError(
            f"{path} is a folder: give a file of tab-separated text with columns {_SENTENCE} and {_LABEL}."
        )
    header, *lines = [line.rstrip("\r") for line in read_text(path).rstrip("\n").split("\n")]
    columns = header.split("\t")
    if not {_SENTENCE, _LABEL} <= set(columns):
        raise InputError(
            f"{path} must begin with a line that names its columns, {_SENTENCE} and {_LABEL} with a tab between, got "
            f"{header[:_SHOWN]!r}."
        )
    for name in (_SENTENCE, _LABEL):
        if columns.count(name) > 1:
            raise InputError(f"{path} has {columns.count(name)} columns named {name}: rename all but one.")
    places = columns.index(_SENTENCE), columns.index(_LABEL)
    rows = list(_rows(path, lines, len(columns), places))
    labels = torch.tensor([label for _, label in rows], dtype=torch.int64)
    classes = len({label for _, label in rows})
    if classes < 2:
        found = f"{counted(len(rows), 'sentence')} of {classes} {'class' if classes == 1 else 'classes'}"
        raise InputError(f"{path} must have sentences of at least 2 classes, got {found}.")
    return LabelledSentences(path, tuple(sentence for sentence, _ in rows), labels)


def _rows(path: Path, lines: Sequence[str], width: int, places: tuple[int, int]) -> Iterator[tuple[str, int]]:
    for number, line in enumerate(lines, start=2):
        cells = line.split("\t")
        if len(cells) != width:
            raise InputError(f"Line {number} of {path} must have {width} columns, as the first line, got {len(cells)}.")
        sentence, label = (cells[place].strip() for place in places)
        if not sentence:
            raise InputError(f"Line {number} of {path} has no sentence: remove the line.")
        if not (label.isascii() and label.isdecimal() and len(label) < 9 and int(label) < _MOST_CLASSES):
            raise InputError(
                f"Line {number} of {path}: {_LABEL} must be the number of a class, such as 0 or 1, got "
                f"{label[:_SHOWN]!r}."
            )
        yield sentence, int(label)


def training_and_test_sentences(folder: Path) -> tuple[LabelledSentences, LabelledSentences]:
    """The training and the test half of a folder: `train.tsv` and `test.tsv`.

    Raises:
        InputError: a file is missing, or the test half has a class that the training half lacks.
    """
    train, test = (_half(folder, name) for name in ("train.tsv", "test.tsv"))
    if unknown := sorted(set(test.labels.tolist()) - set(train.labels.tolist())):
        raise InputError(f"{test.path} has the label {unknown[0]}, which no sentence of {train.path} has.")
    return train, test


def _half(folder: Path, name: str) -> LabelledSentences:
    if not (folder / name).is_file():
        raise InputError(f"{folder} has no {name}: give a folder with train.tsv and test.tsv.")
    return read_sentences(folder / name)
