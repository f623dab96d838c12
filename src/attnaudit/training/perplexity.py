"""How well a language model predicts a text: as it is, and with some of the words that it reads swapped."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Int64
from torch import Tensor
from torch.nn import functional

from attnaudit.capture.capture import evaluating
from attnaudit.errors import NumericalError
from attnaudit.numerics.precision import autocast
from attnaudit.numerics.randomness import torch_generator
from attnaudit.records.ranges import check_range
from attnaudit.sources.decoder import Decoder
from attnaudit.sources.words import LINE_END, Vocabulary
from attnaudit.statistics.intervals import bootstrap_interval
from attnaudit.training.batching import IGNORED, Layout
from attnaudit.training.distributed import Ranks

#: The word that replaces others (Teo & Nguyen 2024, Table 3); it is `<unk>` if the vocabulary does not have it.
REPLACEMENT = "AAA"
#: exp of more overflows.
_LARGEST_LOSS = 700.0


@dataclass(frozen=True)
class Perplexity:
    """exp of the mean loss per word, with a bootstrap interval over contexts; no interval for a single context."""

    loss: float
    words: int
    interval: tuple[float, float] | None

    @property
    def value(self) -> float:
        """The perplexity."""
        return math.exp(self.loss)


@dataclass(frozen=True)
class RobustPerplexity:
    """The perplexity of a text as it is, and after a word swap."""

    clean: Perplexity
    swapped: Perplexity


def contexts(
    numbers: Int64[Tensor, "words"], context: int
) -> tuple[Int64[Tensor, "contexts context"], Int64[Tensor, "contexts context"]]:
    """A text cut into contexts without overlap, and for each word the one that follows it.

    So every word but the first is predicted once, from the words before it in its context. The last context is padded
    at its end, to which a causal model does not attend.
    """
    missing = -(len(numbers) - 1) % context
    inputs = functional.pad(numbers[:-1], (0, missing))
    targets = functional.pad(numbers[1:], (0, missing), value=IGNORED)
    return inputs.view(-1, context), targets.view(-1, context)


def swapped(
    numbers: Int64[Tensor, "*shape"], vocabulary: Vocabulary, rate: float, seed: int
) -> Int64[Tensor, "*shape"]:
    """Each word swapped for "AAA" with probability `rate`; ends of lines are not words and stay.

    Drawn on the CPU from the seed alone, so that every model, on any device, reads the same text.

    Raises:
        SettingError: the rate is not between 0 and 1.
    """
    check_range(0, 1, rate=rate)
    drawn = torch.rand(numbers.shape, generator=torch_generator("swap", seed)).to(numbers.device) < rate
    return numbers.masked_fill(drawn & (numbers != vocabulary.number(LINE_END)), vocabulary.number(REPLACEMENT))


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
    """The perplexity of `targets` given `inputs`, over all contexts of all ranks; the model's mode is restored.

    Raises:
        NumericalError: the loss is not finite, or too large for a perplexity.
    """
    ranks = ranks or Ranks()
    sums = torch.zeros(len(inputs), dtype=torch.float64, device=inputs.device)
    with evaluating(model):
        for own in Layout(len(inputs), batch, 0, ranks).in_order():
            with autocast(inputs.device, precision):
                logits = model(inputs[own])
            losses = functional.cross_entropy(
                logits.float().flatten(0, 1), targets[own].flatten(), ignore_index=IGNORED, reduction="none"
            )
            sums[own] = losses.view(len(own), -1).double().sum(dim=1)
    sums, counts = ranks.total(sums), (targets != IGNORED).sum(dim=1)
    words = int(counts.sum())
    if not (loss := float(sums.sum()) / words) < _LARGEST_LOSS:
        raise NumericalError(f"The loss per word must be < {_LARGEST_LOSS:g}, got {loss}: use a lower learning rate.")
    # The loss is a ratio of sums over contexts, of which the last is shorter, so its linearisation is resampled: the
    # mean of these numbers is the loss, and the weight of a context is its number of words.
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

    The words to predict are those of the original text: if they were swapped too, a model would gain by expecting
    "AAA", and a text of nothing else would be the easiest.

    Args:
        model: a language model of `attnaudit train`.
        numbers: the text, as `vocabulary.numbers(words_of(text))`, on the model's device.
        vocabulary: the model's words, as on its card.
        rate: the share of words that are swapped.
        seed: of the choice of these words.
        batch: the number of contexts at a time.
        precision: `fp32`, or `bf16` for mixed precision.
        ranks: this process among those that share the work.
    """
    inputs, targets = contexts(numbers, model.context)
    clean, robust = (
        perplexity(model, words, targets, batch=batch, precision=precision, ranks=ranks)
        for words in (inputs, swapped(inputs, vocabulary, rate, seed))
    )
    return RobustPerplexity(clean, robust)
