"""Masks mean the same in every form: boolean, added to scores, causal, padding."""

import pytest
import torch

from attnaudit.errors import ShapeError
from attnaudit.numerics.masks import additive, later_keys, mask_rows, merged_mask, padding, real_tokens, visible

SEEN = torch.tensor([[True, False, True], [True, True, False]])


@pytest.mark.parametrize("hidden", [-torch.inf, torch.finfo(torch.float32).min, -1e4, -1e9])
def test_visible_reads_every_way_to_hide_a_key(hidden):
    assert torch.equal(visible(torch.zeros(2, 3).masked_fill(~SEEN, hidden)), SEEN)


def test_position_terms_hide_nothing():
    assert visible(torch.tensor([[-50.0, 3.0]])).all()


def test_integer_masks_are_refused_by_their_type():
    with pytest.raises(ShapeError, match="int64"):
        visible(torch.ones(2, 2, dtype=torch.int64))


def test_additive_mask_and_visible_undo_each_other():
    assert torch.equal(visible(additive(SEEN, torch.float64)), SEEN)
    assert additive(SEEN, torch.float64).dtype == torch.float64
    scores = torch.randn(2, 3)
    assert additive(scores, torch.float64) is scores


@pytest.mark.parametrize(("queries", "keys"), [(4, 4), (2, 5), (5, 2)])
def test_causal_mask_is_the_upper_triangle(queries, keys):
    expected = torch.ones(queries, keys, dtype=torch.bool).triu(1)
    assert torch.equal(later_keys(queries, keys, expected.device), expected)
    assert torch.equal(later_keys(queries, keys, expected.device, slice(1, 2)), expected[1:2])


@pytest.mark.parametrize("form", [lambda mask: mask, lambda mask: additive(mask, torch.float32)])
def test_causality_is_merged_into_a_given_mask(form):
    given = torch.tensor([[True, True, False]] * 3)
    merged, is_causal = merged_mask(form(given), True, 3)
    assert not is_causal
    assert torch.equal(visible(merged), given & torch.ones(3, 3, dtype=torch.bool).tril())


def test_mask_or_causality_alone_stays_as_it_is():
    assert merged_mask(None, True, 3) == (None, True)
    assert merged_mask(SEEN, False, 3)[0] is SEEN


def test_rows_of_a_mask_with_one_row_are_that_row():
    assert torch.equal(mask_rows(SEEN, slice(1, 2)), SEEN[1:])
    assert torch.equal(mask_rows(SEEN[:1], slice(1, 2)), SEEN[:1])


def test_padding_is_what_no_query_attends_to():
    assert real_tokens(None) is None
    assert real_tokens(SEEN & torch.tensor([True, True, False])).tolist() == [True, True, False]


def test_padding_mask_must_have_one_row():
    assert torch.equal(padding(SEEN[None, None, :1], "X"), SEEN[None, None, :1])
    with pytest.raises(ShapeError, match=r"X.*\(2, 3\)"):
        padding(SEEN, "X")
