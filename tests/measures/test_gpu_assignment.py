"""The GPU's assignments are SciPy's, or as good."""

import pytest
import torch
from scipy.optimize import linear_sum_assignment

from attnaudit.measures.assignment import matched

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


def cosines(batch, n, dim, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x, y = (torch.nn.functional.normalize(torch.randn(batch, n, dim, generator=generator, dtype=torch.float64), dim=-1)
            for _ in range(2))  # fmt: skip
    return x @ y.mT


@pytest.mark.parametrize("n", [1, 2, 3, 31, 32, 33, 64, 197, 300, 1024])
@pytest.mark.parametrize("dim", [1, 3, 64])
def test_sums_equal_scipy(n, dim):
    scores = cosines(8 if n < 500 else 2, n, dim)
    ours = matched(scores.cuda()).cpu()
    for found, matrix in zip(ours, scores, strict=True):
        best = matrix[linear_sum_assignment(matrix.numpy(), maximize=True)].sum()
        assert found.sum().item() == pytest.approx(best.item(), rel=1e-12, abs=1e-12)


def test_ties_and_constant_matrices():
    whole = torch.randint(0, 3, (16, 50, 50), generator=torch.Generator().manual_seed(1)).double()
    for scores in (whole, torch.zeros(2, 20, 20, dtype=torch.float64), torch.eye(40, dtype=torch.float64)[None]):
        ours = matched(scores.cuda()).cpu()
        for found, matrix in zip(ours, scores, strict=True):
            assert found.sum().item() == matrix[linear_sum_assignment(matrix.numpy(), maximize=True)].sum().item()


def test_a_matrix_with_a_hole_is_lost_alone():
    scores = cosines(3, 20, 4)
    scores[1, 2, 3] = torch.nan
    ours = matched(scores.cuda())
    assert ours[1].isnan().all()
    assert ours[[0, 2]].isfinite().all()


def test_float32_scores_are_those_that_were_given():
    scores = cosines(4, 60, 8).float()
    torch.testing.assert_close(matched(scores.cuda()).cpu().sum(-1), matched(scores).sum(-1), rtol=1e-6, atol=0)
