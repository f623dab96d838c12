"""The sentences on which models are evaluated, clean and noisy, and models that read them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from attnaudit.errors import InputError, ModelError
from attnaudit.numerics.digest import digest
from attnaudit.numerics.precision import autocast
from attnaudit.records.card import SentenceCard
from attnaudit.records.evaluation import Condition, ConditionKind
from attnaudit.robustness.examples import drawn_indices
from attnaudit.robustness.noises import VERSION, noisy
from attnaudit.sources.cards import sentence_tokens
from attnaudit.sources.model import LoadedModel
from attnaudit.sources.sentences import LabelledSentences


class SentenceModel:
    """A classifier of sentences on a device, as `attnaudit train` leaves it.

    `preprocessing_digest` is equal for models that see the same tokens of a sentence.
    """

    def __init__(self, loaded: LoadedModel, device: str = "cpu", precision: str = "fp32") -> None:
        if not isinstance(loaded.card, SentenceCard):
            raise ModelError(
                f"{loaded.label} does not classify sentences: --tsv is for models of a recipe such as sst2-minilm."
            )
        card = loaded.card
        self.label, self.fingerprint = loaded.label, loaded.fingerprint
        self.device, self.precision = torch.device(device), precision
        self.outputs, self.tokens = card.architecture.classes, sentence_tokens(card)
        self.preprocessing_digest = digest(card.tokenizer, card.architecture.context)
        self.module = loaded.module.to(self.device).eval().requires_grad_(False)

    def __call__(self, tokens: Int64[Tensor, "sentences tokens"]) -> Float[Tensor, "sentences classes"]:
        """The logits."""
        with autocast(self.device, self.precision):
            logits: Tensor = self.module(tokens)
        return logits.float()


@dataclass(frozen=True)
class SentenceExamples:
    """Some sentences of a data set, by index."""

    data: LabelledSentences
    indices: tuple[int, ...]

    @staticmethod
    def drawn(data: LabelledSentences, limit: int | None, seed: int) -> SentenceExamples:
        """`limit` random sentences, in the order of the data set; all if None."""
        return SentenceExamples(data, drawn_indices(len(data), limit, seed))

    @cached_property
    def selected(self) -> LabelledSentences:
        """The selected sentences."""
        return self.data.select(self.indices)

    @property
    def fingerprint(self) -> str:
        """A hash of the selected sentences and their places."""
        return digest(self.selected.fingerprint, self.indices)

    def source(self, condition: Condition) -> tuple[str, int]:
        """A name for what models are shown under a condition, and how many sentences there are."""
        made = self.fingerprint if condition.kind is ConditionKind.CLEAN else digest(self.fingerprint, VERSION)
        return made, len(self.indices)

    def shown(self, model: SentenceModel, condition: Condition, seed: int) -> Int64[Tensor, "sentences tokens"]:
        """The tokens of the selected sentences under a condition."""
        texts = self.selected.sentences
        if condition.kind is ConditionKind.NOISE:
            numbered = zip(texts, self.indices, strict=True)
            texts = tuple(noisy(text, condition.name, condition.strength, place, seed) for text, place in numbered)
        return model.tokens(texts)

    def check(self, model: SentenceModel) -> None:
        """Refuse sentences of other classes than the model's, whose labels may have another meaning.

        Raises:
            InputError: there are more, or fewer.
        """
        if self.data.classes != model.outputs:
            largest = self.data.classes - 1
            raise InputError(
                f"{model.label} has {model.outputs} classes, but the largest label of {self.data.path} is {largest}: "
                "give sentences of the model's classes."
            )
