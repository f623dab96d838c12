"""How well a language model predicts a text: as it is, and with words that it reads swapped for another."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Int64
from torch import Tensor
from torch.nn import functional

from attnaudit.capture.capture import evaluating
from attnaudit.errors import NumericalError, UsageError
from attnaudit.numerics.precision import autocast
from attnaudit.numerics.randomness import torch_generator
from attnaudit.sources.decoder import Decoder
from attnaudit.sources.words import LINE_END, Vocabulary
from attnaudit.statistics.intervals import bootstrap_interval
from attnaudit.training.batches import Layout
from attnaudit.training.processes import Ranks

#: What words are swapped for (Teo & Nguyen 2024, Table 3); a word like any other, so `<unk>` where it is not known.
STAND_IN = "AAA"
#: The target of a place behind the end of the text, which torch leaves out of a loss.
_NOTHING = -100
#: exp of more is no number any more.
_LARGEST_LOSS = 700.0


@dataclass(frozen=True)
class Perplexity:
    """exp of the mean loss of a word, with a bootstrap interval over contexts; no interval for a single context."""

    loss: float
    words: int
    interval: tuple[float, float] | None

    @property
    def value(self) -> float:
        """The perplexity."""
        return math.exp(self.loss)


@dataclass(frozen=True)
class RobustPerplexity:
    """Of a text as it is, and with words swapped."""

    clean: Perplexity
    swapped: Perplexity


def contexts(
    numbers: Int64[Tensor, "words"], context: int
) -> tuple[Int64[Tensor, "contexts context"], Int64[Tensor, "contexts context"]]:
    """A text as stretches of `context` words, without overlap, and beside each word the one that follows it.

    So every word but the first is predicted once, from the words before it that are in its stretch. The last stretch is
    filled up behind its end, where a causal model does not look.
    """
    missing = -(len(numbers) - 1) % context
    inputs = functional.pad(numbers[:-1], (0, missing))
    targets = functional.pad(numbers[1:], (0, missing), value=_NOTHING)
    return inputs.view(-1, context), targets.view(-1, context)


def swapped(
    numbers: Int64[Tensor, "*shape"], vocabulary: Vocabulary, rate: float, seed: int
) -> Int64[Tensor, "*shape"]:
    """Each word swapped for "AAA" with probability `rate`; ends of lines, which are no words, stay.

    Drawn on the CPU from the seed alone, so that every model, wherever it is, meets the same text.

    Raises:
        UsageError: the rate is no share.
    """
    if not 0 <= rate <= 1:
        raise UsageError(f"The rate of a word swap is {rate}: it is a share of the words, from 0 to 1.")
    drawn = torch.rand(numbers.shape, generator=torch_generator("swap", seed)).to(numbers.device) < rate
    return numbers.masked_fill(drawn & (numbers != vocabulary.number(LINE_END)), vocabulary.number(STAND_IN))


@torch.no_grad()
def perplexity(
    model: Decoder,
    inputs: Int64[Tensor, "contexts context"],
    targets: Int64[Tensor, "contexts context"],
    *,
    batch: int = 64,
    precision: str = "fp32",
    ranks: Ranks | None = None,
) -> Perplexity:
    """Of `targets` after `inputs`, all contexts of all ranks; the model is afterwards in the mode it was in.

    Raises:
        NumericalError: the loss is too large for a perplexity, or no number.
    """
    ranks = ranks or Ranks()
    sums = torch.zeros(len(inputs), dtype=torch.float64, device=inputs.device)
    with evaluating(model):
        for own in Layout(len(inputs), batch, 0, ranks).in_order():
            with autocast(inputs.device, precision):
                logits = model(inputs[own])
            losses = functional.cross_entropy(
                logits.float().flatten(0, 1), targets[own].flatten(), ignore_index=_NOTHING, reduction="none"
            )
            sums[own] = losses.view(len(own), -1).double().sum(dim=1)
    sums, counts = ranks.total(sums), (targets != _NOTHING).sum(dim=1)
    words = int(counts.sum())
    if not (loss := float(sums.sum()) / words) < _LARGEST_LOSS:
        raise NumericalError(f"A loss of {loss} per word has no perplexity: the model has diverged, take a lower rate.")
    # A ratio of sums over contexts, the last of which is shorter, so what is drawn again is its linearisation: the mean
    # of these numbers is the loss, and a short context weighs as little as it has words.
    parts = loss + (sums - counts * loss) * len(sums) / words
    interval = bootstrap_interval(parts.cpu().numpy(), seed=0)
    return Perplexity(loss, words, None if interval is None else (math.exp(interval[0]), math.exp(interval[1])))


def robust_perplexity(
    model: Decoder,
    numbers: Int64[Tensor, "words"],
    vocabulary: Vocabulary,
    *,
    rate: float = 0.1,
    seed: int = 0,
    batch: int = 64,
    precision: str = "fp32",
    ranks: Ranks | None = None,
) -> RobustPerplexity:
    """Perplexity of a text, and of the same text after a word swap of what the model reads.

    What it has to predict are the words of the text as it is: were they swapped too, a model would score by expecting
    "AAA", and a text that consists of nothing else would be the easiest of all.

    Args:
        model: a language model of `attnaudit train`.
        numbers: the text, as `vocabulary.numbers(words_of(text))`, on the model's device.
        vocabulary: the model's words, as on its card.
        rate: share of the words that are swapped.
        seed: which ones.
        batch: contexts at a time.
        precision: `fp32`, or `bf16` for mixed precision.
        ranks: processes that share the work.
    """
    inputs, targets = contexts(numbers, model.context)
    clean, robust = (
        perplexity(model, words, targets, batch=batch, precision=precision, ranks=ranks)
        for words in (inputs, swapped(inputs, vocabulary, rate, seed))
    )
    return RobustPerplexity(clean, robust)
