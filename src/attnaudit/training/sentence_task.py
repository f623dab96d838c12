"""Classification of sentences: labelled sentences, a pretrained encoder that is fine-tuned, accuracy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from torch import Tensor, nn

from attnaudit.errors import UsageError
from attnaudit.records.card import SentenceCard, TrainingFacts
from attnaudit.records.recipe import SentenceRecipe
from attnaudit.sources.encoder import PretrainedEncoder, SentenceTokens, read_encoder
from attnaudit.sources.sentences import LabelledSentences
from attnaudit.training.accuracy import TEST_BATCH_FACTOR, classes_in_words, evaluate_classifier
from attnaudit.training.batching import Batch, InMemoryBatches, Layout


@dataclass(frozen=True)
class SentenceTask:
    """A recipe with its encoder and both halves of its sentences."""

    recipe: SentenceRecipe
    encoder: PretrainedEncoder
    train: LabelledSentences
    test: LabelledSentences

    @staticmethod
    def from_data(recipe: SentenceRecipe, train: LabelledSentences, test: LabelledSentences) -> SentenceTask:
        """The classes are those of the training half, the depth is the encoder's.

        Raises:
            ModelError: there is no such encoder, or it cannot be fine-tuned.
            UsageError: it cannot read a context as long as the recipe's.
        """
        encoder = read_encoder(recipe.model.encoder)
        most = encoder.config.get("max_position_embeddings") or recipe.model.context
        if recipe.model.context > most:
            raise UsageError(
                f"model.context must be ≤ the {most} tokens of {encoder.name}, got {recipe.model.context}."
            )
        model = replace(recipe.model, classes=train.classes, depth=encoder.depth)
        return SentenceTask(replace(recipe, model=model), encoder, train, test)

    @property
    def data_summary(self) -> str:
        """The numbers of sentences and classes."""
        classes = classes_in_words(self.train.classes, self.train.labels, "training sentence")
        counts = f"{len(self.train):,} training and {len(self.test):,} test sentences of {classes}"
        return f"{counts}, from {self.encoder.name}"

    @property
    def examples(self) -> int:
        """The number of training sentences."""
        return len(self.train)

    @property
    def fingerprints(self) -> list[str]:
        """Hashes of both halves, and of the encoder that the training begins with."""
        return [self.train.fingerprint, self.test.fingerprint, self.encoder.fingerprint]

    @property
    def facts(self) -> dict[str, Any]:
        """The encoder."""
        return {"encoder": self.encoder.name}

    def build(self, seed: int) -> nn.Module:
        """The pretrained encoder with a new classifier."""
        return self.encoder.classifier(self.recipe.model, seed)

    def tokens(self) -> SentenceTokens:
        """The encoder's tokenizer."""
        padding = int(self.encoder.config["pad_token_id"])
        return SentenceTokens(self.encoder.tokenizer, padding, self.recipe.model.context)

    def feed(self, layout: Layout, device: str, workers: int) -> SentenceFeed:
        """Tokens on a device; they need no worker processes."""
        return SentenceFeed(self, layout, device)

    def describe(self, record: Mapping[str, float]) -> str:
        """Accuracies."""
        averaged = record.get("average_test_accuracy")
        more = "" if averaged is None else f", averaged weights {averaged:.2%}"
        return f"test accuracy {record['test_accuracy']:.2%}{more}"

    def card(self, facts: Mapping[str, Any]) -> SentenceCard:
        """With all that is needed to build the network and to read a sentence."""
        own = self.encoder
        return SentenceCard(self.recipe.name, self.recipe.model, own.config, own.tokenizer, cast(TrainingFacts, facts))


class SentenceFeed:
    """Both halves on a device, as tokens."""

    def __init__(self, task: SentenceTask, layout: Layout, device: str) -> None:
        read = task.tokens()
        self._train = InMemoryBatches(read(task.train.sentences), task.train.labels, layout, device)
        test_layout = replace(layout, examples=len(task.test), batch=TEST_BATCH_FACTOR * task.recipe.batch)
        self._test = InMemoryBatches(read(task.test.sentences), task.test.labels, test_layout, device)
        self._precision, self._ranks = task.recipe.precision, layout.ranks

    def training(self, epoch: int, start: int) -> Iterator[Batch]:
        """Tokens and classes."""
        return self._train.training(epoch, start)

    def prepare(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Unchanged."""
        return batch

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Loss and accuracy."""
        score = evaluate_classifier(model, self._test.in_order(), self._precision, self._ranks)
        return {"test_loss": score.loss, "test_accuracy": score.accuracy}

    def monitor_inputs(self, batch: int, count: int) -> dict[str, Tensor]:
        """Tokens, padding included."""
        train, _ = next(iter(self._train.training(0, batch)))
        test, _ = next(iter(self._test.in_order()))
        return {"train": train[:count], "test": test[:count]}
