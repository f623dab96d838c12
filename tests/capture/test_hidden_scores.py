"""However a model writes a large negative number over its scores, it is a mask; what depends on the scores is none."""

import pytest
import torch

from attnaudit.capture import capture
from attnaudit.errors import CaptureError
from attnaudit.numerics.masks import visible
from tests.capture.ways import INPUTS, OneLayer

TOKENS = INPUTS.shape[1]
LATER = torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1)
LAST = torch.arange(TOKENS).expand(TOKENS, -1) >= TOKENS - 2


def slice_of_keys(scores):
    scores[..., -2:] = -1e9
    return scores


def slice_from_a_tensor(scores):
    scores[..., -2:] = torch.full((2,), -1e9)
    return scores


def filled_view(scores):
    scores.narrow(-1, TOKENS - 2, 2).fill_(-torch.inf)
    return scores


def tokens_by_number(scores):
    scores[..., torch.tensor([TOKENS - 2, TOKENS - 1])] = -1e9
    return scores


def mask_of_queries_and_keys(scores):
    scores[:, :, LATER] = -1e9
    return scores


def mask_of_everything(scores):
    scores[LATER.expand_as(scores)] = torch.finfo(scores.dtype).min
    return scores


def mask_in_a_view(scores):
    scores[0, 1].masked_fill_(LATER, -1e9)
    scores[0, ::2][:, LATER] = -1e9
    scores[1].masked_fill_(LATER, -1e9)
    return scores


def index_fill(scores):
    return scores.index_fill(3, torch.tensor([TOKENS - 2, TOKENS - 1]), -1e9)


def index_fill_in_place(scores):
    return scores.index_fill_(-1, torch.tensor([TOKENS - 2, TOKENS - 1]), -1e9)


def scatter(scores):
    places = torch.tensor([TOKENS - 2, TOKENS - 1]).expand(*scores.shape[:-1], 2)
    return scores.scatter(-1, places, -1e9)


def masked_scatter(scores):
    return scores.masked_scatter(LATER, torch.full_like(scores, -1e9))


def slice_scatter(scores):
    return torch.slice_scatter(scores, torch.full((*scores.shape[:-1], 2), -1e9), -1, TOKENS - 2)


def attending(change):
    def attend(q, k, v):
        return change(q @ k.mT / 2).softmax(-1) @ v

    attend.__name__ = change.__name__
    return OneLayer(attend)


KEYS = [
    slice_of_keys,
    slice_from_a_tensor,
    filled_view,
    tokens_by_number,
    index_fill,
    index_fill_in_place,
    scatter,
    slice_scatter,
]
CAUSAL = [mask_of_queries_and_keys, mask_of_everything, mask_in_a_view, masked_scatter]


@pytest.mark.parametrize(("change", "hidden"), [(c, LAST) for c in KEYS] + [(c, LATER) for c in CAUSAL])
def test_large_negative_numbers_are_a_mask_however_they_are_written(change, hidden):
    heads = capture(attending(change), INPUTS, keep_padding=True).heads
    plain = capture(attending(lambda scores: scores), INPUTS).heads
    torch.testing.assert_close(heads.query, plain.query)
    torch.testing.assert_close(heads.key, plain.key)
    assert torch.equal(visible(heads.bias), ~hidden.expand_as(heads.bias))
    logits = (plain.query @ plain.key.mT * plain.scale[:, None, None]).masked_fill(hidden, -torch.inf)
    torch.testing.assert_close(heads.output, logits.softmax(-1) @ plain.value, atol=1e-6, rtol=1e-5)


def smallest(scores):
    scores[scores < scores.mean()] = -1e9
    return scores


def smallest_by_number(scores):
    return scores.scatter(-1, scores.argmin(-1, keepdim=True), -1e9)


@pytest.mark.parametrize("change", [smallest, smallest_by_number])
def test_what_is_hidden_because_of_its_own_score_is_refused(change):
    with pytest.raises(CaptureError, match="its bias depends on its own scores"):
        capture(attending(change), INPUTS)


def small_number(scores):
    scores[..., -2:] = -3.0
    return scores


def added_at_places(scores):
    return scores.index_put((torch.tensor([0]),), torch.tensor(-1e9), accumulate=True)


@pytest.mark.parametrize("change", [small_number, added_at_places])
def test_other_numbers_written_over_scores_are_refused(change):
    with pytest.raises(CaptureError, match=r"its scores pass through|some of its scores are replaced"):
        capture(attending(change), INPUTS)
