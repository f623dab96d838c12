"""What is kept of a head is what was captured, whatever its mask, windows or keys."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from attnaudit.audit.head_views import BLOCK_TOKENS, PAIRS, first_windows, head_views, patch_grid
from attnaudit.capture import HeadId, Heads
from attnaudit.capture.key_heads import by_key_head
from attnaudit.measures.columns import column_cosine_matched
from attnaudit.measures.measure_input import MeasureInput
from attnaudit.protocol import Protocol
from tests.heads import causal, random_heads


def views(heads, *, grid=lambda tokens: None, is_picture=False, name="input"):
    shown = first_windows(heads, name)
    return list(head_views(shown, grid, is_picture=is_picture, protocol=Protocol.EXACT))


def assert_kept(kept, rows):
    """Equal up to half a step of each row."""
    step = rows.max(dim=1, keepdim=True).values.numpy() / 255
    assert (np.abs(kept.decoded() - rows.numpy()) <= 0.5001 * step + 1e-7).all()


def test_kept_rows_are_the_captured_softmax_up_to_quantisation():
    heads = random_heads(0, heads=3, tokens=40, dim=8)
    for view, attention in zip(views(heads), heads.attention(), strict=True):
        assert_kept(view.attention, torch.stack([attention.mean(dim=0), attention[0]]))
        assert_kept(view.block, attention[:BLOCK_TOKENS, :BLOCK_TOKENS])
        assert view.one_query == 0


def test_a_causal_head_averages_over_the_queries_that_see_a_key_and_shows_the_last_one():
    heads = causal(random_heads(1, tokens=12))
    for view, attention in zip(views(heads), heads.attention(), strict=True):
        seeing = torch.arange(12, 0, -1)
        assert_kept(view.attention, torch.stack([attention.sum(dim=0) / seeing, attention[-1]]))
        assert view.causal
        assert view.one_query == 11
        assert view.columns is None
        assert "causal head" in view.problem
        assert len(view.eigenvalues) == heads.dim  # those of its keys exist all the same


def test_cosines_are_those_of_the_measure_and_columns_are_their_pairs():
    heads = random_heads(2, heads=2, tokens=60, dim=6)
    measured = column_cosine_matched(MeasureInput.of(heads))
    for view, mean in zip(views(heads), measured.tolist(), strict=True):
        assert np.mean(view.cosines) == pytest.approx(mean, abs=1e-12)
        assert list(view.cosines) == sorted(view.cosines, reverse=True)
        columns = view.columns.decoded()
        assert len(columns) == 2 * PAIRS
        for pair in range(PAIRS):
            value, predicted = columns[2 * pair], columns[2 * pair + 1]
            cosine = value @ predicted / np.linalg.norm(value) / np.linalg.norm(predicted)
            assert cosine == pytest.approx(view.cosines[pair], abs=0.02)


def test_eigenvalues_stay_below_their_bound():
    for view in views(random_heads(3, tokens=30)):
        assert 0 < view.eigenvalues[0] <= view.bound
        assert list(view.eigenvalues) == sorted(view.eigenvalues, reverse=True)


def test_of_several_windows_the_first_is_kept_and_the_others_counted():
    heads = random_heads(4, heads=6, tokens=16)
    index = tuple(HeadId("model", "input", 0, place % 2, place // 2) for place in range(6))
    found = views(replace(heads, index=index), grid=patch_grid(32, 32), is_picture=True)
    assert [(view.head, view.windows, view.grid) for view in found] == [(0, 3, (4, 4)), (1, 3, (4, 4))]
    assert_kept(found[1].attention, heads.attention()[1].mean(dim=0, keepdim=True))


def test_heads_that_share_their_keys_are_taken_together():
    shared = random_heads(5, heads=1, tokens=20)
    others = random_heads(6, heads=2, tokens=20)
    twice = Heads.cat([shared, shared])
    heads = replace(twice, query=others.query, key_heads=(0, 0), index=tuple(HeadId("m", "i", 0, h) for h in (0, 1)))
    heads = replace(heads, output=heads.attended(heads.value))
    (view,) = views(heads, name="i")
    assert view.query_heads == 2
    assert_kept(view.attention, torch.stack([by_key_head(heads).attention()[0].mean(dim=0), heads.attention()[0, 0]]))


def test_an_input_that_a_layer_does_not_have_has_no_heads():
    assert first_windows(random_heads(7), "another") is None


@pytest.mark.parametrize(
    ("size", "tokens", "grid"),
    [
        ((224, 224), 197, (14, 14)),
        ((224, 224), 196, (14, 14)),
        ((224, 224), 201, (14, 14)),
        ((384, 128), 48, (12, 4)),
        ((384, 128), 49, (12, 4)),
        ((224, 224), 230, None),
        ((224, 224), 1, (1, 1)),
    ],
)
def test_tokens_are_laid_out_as_square_patches_after_a_few_others(size, tokens, grid):
    assert patch_grid(*size)(tokens) == grid


def test_a_picture_without_other_tokens_has_the_mean_only():
    (view, *_) = views(random_heads(8, tokens=16), grid=patch_grid(32, 32), is_picture=True)
    assert view.one_query is None
    assert len(view.attention.low) == 1
    assert view.block is None
