"""Perplexity: a number whose value is known for models that know nothing, and the word swap."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from attnaudit.errors import NumericalError, UsageError
from attnaudit.records.architecture import DecoderArchitecture
from attnaudit.sources.decoder import build_decoder
from attnaudit.sources.words import LINE_END, Vocabulary
from attnaudit.training.distributed import Ranks
from attnaudit.training.perplexity import REPLACEMENT, contexts, perplexity, robust_perplexity, swapped

WORDS = Vocabulary(("<unk>", LINE_END, *"abcdefghij"))
NUMBERS = torch.randint(len(WORDS), (50,), generator=torch.Generator().manual_seed(0))


def model():
    network = build_decoder(DecoderArchitecture(vocabulary=len(WORDS), context=8, width=8, heads=2, depth=1), 0)
    with torch.no_grad():
        network.words.weight.mul_(40)  # far from uniform
    return network


class Uniform(nn.Module):
    """Expects every word alike."""

    context = 8

    def forward(self, input_ids):
        return torch.zeros(*input_ids.shape, len(WORDS))


class Certain(nn.Module):
    """Is sure of a word, whatever it reads."""

    context = 8

    def __init__(self, size):
        super().__init__()
        self.size = size

    def forward(self, input_ids):
        return torch.zeros(*input_ids.shape, len(WORDS)).index_fill(-1, torch.tensor(2), self.size)


def test_a_uniform_model_is_as_perplexed_as_there_are_words():
    found = robust_perplexity(Uniform(), NUMBERS, WORDS)
    assert found.clean.value == pytest.approx(len(WORDS), rel=1e-6)
    assert found.swapped.value == pytest.approx(len(WORDS), rel=1e-6)
    assert found.clean.interval == pytest.approx((len(WORDS), len(WORDS)), rel=1e-6)
    assert found.clean.words == len(NUMBERS) - 1


@given(st.integers(2, 40), st.integers(1, 12))
def test_every_word_but_the_first_is_predicted_once_from_the_one_before_it(count, context):
    inputs, targets = contexts(torch.arange(count), context)
    real = targets >= 0
    assert targets[real].tolist() == list(range(1, count))
    assert (targets[real] - inputs[real] == 1).all()
    assert inputs.shape == targets.shape == (math.ceil((count - 1) / context), context)


def test_perplexity_is_that_of_the_words_one_by_one():
    network = model()
    losses = []
    for place in range(1, len(NUMBERS)):
        start = (place - 1) // network.context * network.context
        scores = network(NUMBERS[None, start:place])[0, -1]
        losses.append(-scores.log_softmax(0)[NUMBERS[place]].item())
    found = robust_perplexity(network, NUMBERS, WORDS).clean
    assert found.loss == pytest.approx(sum(losses) / len(losses), rel=1e-5)
    assert found.interval[0] < found.value < found.interval[1]


@pytest.mark.parametrize("batch", [1, 3, 64])
def test_the_batch_does_not_matter(batch):
    network = model()
    whole, cut = (robust_perplexity(network, NUMBERS, WORDS, batch=size) for size in (7, batch))
    assert cut.clean.loss == pytest.approx(whole.clean.loss, rel=1e-6)
    assert cut.swapped.interval == pytest.approx(whole.swapped.interval, rel=1e-6)


def test_the_mode_of_the_model_stays():
    network = model().train()
    robust_perplexity(network, NUMBERS, WORDS)
    assert all(module.training for module in network.modules())


def test_a_single_context_has_no_interval():
    assert robust_perplexity(model(), NUMBERS[:5], WORDS).clean.interval is None


def test_ranks_add_up_to_one_process(monkeypatch):
    network, (inputs, targets) = model(), contexts(NUMBERS, 8)
    sums = []
    monkeypatch.setattr(Ranks, "total", lambda self, own: sums.append(own) or own)
    for rank in range(3):
        perplexity(network, inputs, targets, ranks=Ranks(rank, 3))
    perplexity(network, inputs, targets)
    torch.testing.assert_close(sum(sums[:3]), sums[3])


def test_a_swap_of_nothing_is_the_text_itself():
    assert torch.equal(swapped(NUMBERS, WORDS, 0.0, 0), NUMBERS)
    found = robust_perplexity(model(), NUMBERS, WORDS, rate=0.0)
    assert found.swapped == found.clean


def test_a_swap_of_everything_leaves_no_word_but_the_ends_of_lines():
    after = swapped(NUMBERS, WORDS, 1.0, 0)
    ends = WORDS.number(LINE_END) == NUMBERS
    assert ends.any()
    assert (after[ends] == WORDS.number(LINE_END)).all()
    assert (after[~ends] == WORDS.number(REPLACEMENT)).all()


def test_what_words_are_swapped_for_is_a_word_of_its_own_where_it_is_known():
    known = Vocabulary((*WORDS.words, REPLACEMENT))
    words = torch.full((6,), known.number("a"))
    assert swapped(words, known, 1.0, 0).tolist() == [len(WORDS)] * 6
    assert swapped(words, WORDS, 1.0, 0).tolist() == [0] * 6


def test_the_rate_is_the_share_of_words_that_are_swapped_and_the_seed_says_which():
    words = torch.full((20_000,), WORDS.number("a"))
    first, again, other = (swapped(words, WORDS, 0.3, seed) for seed in (1, 1, 2))
    assert (first != words).double().mean() == pytest.approx(0.3, abs=0.02)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_words_are_swapped_where_they_are_read_and_not_where_they_are_expected():
    always_a = torch.full((50,), WORDS.number("a"))
    found = robust_perplexity(Certain(50.0), always_a, WORDS, rate=1.0)
    assert found.swapped.value == pytest.approx(1.0)


@pytest.mark.parametrize("rate", [-0.1, 1.5, math.nan])
def test_a_rate_that_is_no_share_is_refused(rate):
    with pytest.raises(UsageError, match=f"rate must be ≥ 0 and ≤ 1, got {rate}"):
        robust_perplexity(model(), NUMBERS, WORDS, rate=rate)


@pytest.mark.parametrize("size", [1e4, math.nan])
def test_a_loss_beyond_any_perplexity_is_an_error(size):
    with pytest.raises(NumericalError, match="loss per word must be < 700"):
        robust_perplexity(Certain(size), NUMBERS, WORDS)
