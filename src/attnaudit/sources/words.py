"""Splitting text into words, and a vocabulary of numbered words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from attnaudit.errors import InputError

#: An unknown word, as in WikiText, and the end of a line.
UNKNOWN, LINE_END = "<unk>", "<eos>"


def words_of(text: str) -> Iterator[str]:
    """The words of a text, split at white space, with `<eos>` after every line that has words.

    WikiText is already tokenised in this way; only its raw form has no `<unk>` in place of rare words.
    """
    for line in text.split("\n"):
        if words := line.split():
            yield from words
            yield LINE_END


@dataclass(frozen=True)
class Vocabulary:
    """Numbered words: `<unk>` is 0, `<eos>` is 1, then all others, the most frequent first."""

    words: tuple[str, ...]

    @staticmethod
    def of(words: Iterable[str], min_count: int) -> Vocabulary:
        """The words that occur at least `min_count` times.

        Raises:
            InputError: no word does.
        """
        counts = Counter(words)
        known = [word for word, count in counts.items() if count >= min_count and word not in (UNKNOWN, LINE_END)]
        if not known:
            raise InputError(f"No word of the text occurs at least {min_count} times: use --set min_count=1.")
        return Vocabulary((UNKNOWN, LINE_END, *sorted(known, key=lambda word: (-counts[word], word))))

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {word: number for number, word in enumerate(self.words)}

    def number(self, word: str) -> int:
        """The number of a word, or of `<unk>` if it is not known."""
        return self._numbers.get(word, 0)

    def numbers(self, words: Iterable[str]) -> Int64[Tensor, "words"]:
        """The numbers of all words."""
        return torch.from_numpy(np.fromiter((self.number(word) for word in words), dtype=np.int64))

    def batch(self, texts: Sequence[str], length: int) -> dict[str, Tensor]:
        """Texts as a batch, truncated to `length` words; shorter ones are padded at the end with `<eos>`."""
        rows = [self.numbers(words_of(text))[:length] for text in texts]
        return {"input_ids": pad_sequence(rows, batch_first=True, padding_value=self.number(LINE_END))}
