"""The kernel of Primal-Attention in small coordinates is the one in large ones."""

from dataclasses import replace

import pytest
import torch

from attnaudit.kernel.primal import primal_kernel, primal_scores
from tests.primal_heads import dense_kernel, random_primal


@pytest.mark.parametrize("tokens", [4, 6, 15])
def test_singular_values_are_those_of_the_whole_matrix(tokens):
    heads = random_primal(0, tokens=tokens)
    kernel = primal_kernel(heads)
    expected = torch.linalg.svdvals(dense_kernel(heads))
    torch.testing.assert_close(kernel.values, expected[:, : min(tokens, 6)])
    assert kernel.rank.tolist() == [min(tokens, 6)] * 2


def test_scores_have_the_lengths_and_angles_they_have_over_tokens():
    heads = random_primal(1)
    kernel = primal_kernel(heads)
    for small, large in zip(kernel.scores(heads), primal_scores(heads), strict=True):
        torch.testing.assert_close(small.mT @ small, large.mT @ large)
    small, large = kernel.scores(heads), primal_scores(heads)
    torch.testing.assert_close(small.e.mT @ kernel.matrix @ small.r, large.e.mT @ dense_kernel(heads) @ large.r)


def test_rows_of_few_directions_leave_the_kernel_their_rank():
    heads = random_primal(2)
    flat = replace(heads, rows=heads.rows.clone().index_fill_(2, torch.tensor([0, 3]), 0.0))
    assert primal_kernel(flat).rank.tolist() == [4, 4]


def test_a_head_that_is_not_finite_leaves_the_others_alone():
    heads = random_primal(3)
    lost = replace(heads, key=heads.key.clone().index_fill_(0, torch.tensor([0]), torch.nan))
    kernel = primal_kernel(lost)
    assert kernel.rank[0] == 0
    assert kernel.values[0].isnan().all()
    torch.testing.assert_close(kernel.values[1], primal_kernel(heads).values[1])
