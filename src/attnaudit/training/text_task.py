"""Language modelling: words, a causal language model, perplexity as it is and under a word swap."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from attnaudit.errors import InputError
from attnaudit.records.card import TextCard, TrainingFacts
from attnaudit.records.recipe import TextRecipe
from attnaudit.sources.corpora import Corpus
from attnaudit.sources.decoder import Decoder, build_decoder
from attnaudit.sources.words import UNKNOWN, Vocabulary
from attnaudit.training.batching import Batch, InMemoryBatches, Layout
from attnaudit.training.perplexity import Perplexity, contexts, robust_perplexity


@dataclass(frozen=True)
class TextTask:
    """A recipe with the vocabulary of its training half, and both halves as numbers of words."""

    recipe: TextRecipe
    vocabulary: Vocabulary
    train: Int64[Tensor, "words"]
    test: Int64[Tensor, "words"]
    fingerprints: list[str]

    @staticmethod
    def from_data(recipe: TextRecipe, train: Corpus, test: Corpus) -> TextTask:
        """The vocabulary is that of the training half.

        Raises:
            InputError: the training half does not fill a context, or no word of it is frequent enough.
        """
        context = recipe.model.context
        if len(train) <= context:
            raise InputError(
                f"{train.path} must have more than the {context} words of a context, got {len(train)} (with ends of "
                "lines): use more text, or --set model.context=…"
            )
        vocabulary = Vocabulary.of(train.words(), recipe.min_count)
        train_words, test_words = (vocabulary.numbers(half.words()) for half in (train, test))
        fingerprints = [train.fingerprint, test.fingerprint]
        return TextTask(recipe.for_words(len(vocabulary)), vocabulary, train_words, test_words, fingerprints)

    @property
    def data_summary(self) -> str:
        """The numbers of words."""
        return f"{len(self.train):,} training and {len(self.test):,} test words, {len(self.vocabulary):,} distinct"

    @property
    def examples(self) -> int:
        """The number of full training contexts."""
        return (len(self.train) - 1) // self.recipe.model.context

    @property
    def facts(self) -> dict[str, Any]:
        """The vocabulary, and how the test half looks to a model that knows only the frequencies of words."""
        unknown = (self.test == self.vocabulary.number(UNKNOWN)).double().mean()
        return {
            "vocabulary": len(self.vocabulary),
            "test_words": len(self.test) - 1,
            "test_unknown": float(unknown),
            "unigram_perplexity": self._unigram_perplexity(),
            "swap_rate": self.recipe.swap_rate,
        }

    def _unigram_perplexity(self) -> float:
        """The perplexity of the test half for word frequencies p(w) = (n(w) + 1) / Σ (n + 1) of the training half."""
        counts = torch.bincount(self.train, minlength=len(self.vocabulary)).double() + 1
        return math.exp(-float((counts / counts.sum()).log()[self.test[1:]].mean()))

    def build(self, seed: int) -> nn.Module:
        """An untrained decoder."""
        return build_decoder(self.recipe.model, seed)

    def feed(self, layout: Layout, device: str, workers: int) -> TextFeed:
        """Words on a device; they need no worker processes."""
        return TextFeed(self, layout, device)

    def describe(self, record: Mapping[str, float]) -> str:
        """Perplexities."""
        clean, robust = record["test_perplexity"], record["swapped_perplexity"]
        averaged = record.get("average_test_perplexity")
        more = "" if averaged is None else f", averaged weights {averaged:.1f}"
        return f"test perplexity {clean:.1f}, {self.recipe.swap_rate:.0%} of words swapped {robust:.1f}{more}"

    def card(self, facts: Mapping[str, Any]) -> TextCard:
        """With the vocabulary."""
        return TextCard(self.recipe.name, self.recipe.model, self.vocabulary.words, cast(TrainingFacts, facts))


class TextFeed:
    """Both halves on a device."""

    def __init__(self, task: TextTask, layout: Layout, device: str) -> None:
        self._recipe, self._vocabulary, self._layout = task.recipe, task.vocabulary, layout
        words, following = contexts(task.train, task.recipe.model.context)
        self._train = InMemoryBatches(words, following, layout, device)
        self._test = task.test.to(device)

    def training(self, epoch: int, start: int) -> Iterator[Batch]:
        """Full contexts of words, and the words that follow them."""
        return self._train.training(epoch, start)

    def prepare(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Words unchanged; each following word is a prediction of its own."""
        words, following = batch
        return words, following.flatten()

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Loss, perplexity and its interval, as the text is and after the word swap."""
        found = robust_perplexity(
            cast(Decoder, model),
            self._test,
            self._vocabulary,
            rate=self._recipe.swap_rate,
            batch=self._recipe.batch,
            precision=self._recipe.precision,
            ranks=self._layout.ranks,
        )
        return {**_numbers("test", found.clean), **_numbers("swapped", found.swapped)}

    def monitor_inputs(self, batch: int, count: int) -> dict[str, Tensor]:
        """Contexts of words, on every rank others; the last of a text, which is padded, only if there is no other."""
        train, _ = next(iter(self._train.training(0, batch)))
        context, ranks = self._recipe.model.context, self._layout.ranks
        complete = max(1, (len(self._test) - 1) // context)
        test = contexts(self._test, context)[0][:complete]
        return {"train": train[:count], "test": test[ranks.rank :: ranks.count][:count]}


def _numbers(name: str, found: Perplexity) -> dict[str, float]:
    numbers = {f"{name}_loss": found.loss, f"{name}_perplexity": found.value}
    if found.interval is not None:
        numbers |= {f"{name}_perplexity_low": found.interval[0], f"{name}_perplexity_high": found.interval[1]}
    return numbers
