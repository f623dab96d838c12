"""Components of equal size, as few and as close as count."""

import pytest
import torch

from attnaudit.theories.ties import problems_of_ties


def sizes(*gaps, columns=20):
    """Sizes that fall by a tenth from one to the next, but for the first ones, which fall by these shares."""
    shares = [1 - gap for gap in gaps] + [0.9] * (columns - 1 - len(gaps))
    return torch.tensor([[1.0, *shares]], dtype=torch.float64).cumprod(dim=1)


@pytest.mark.parametrize(("gap", "tied"), [(0.0, True), (0.9e-5, True), (1.1e-5, False), (1e-3, False)])
def test_sizes_tie_if_they_differ_by_less_than_a_hundred_thousandth(gap, tied):
    words = "3 of its 20 leading sizes are equal up to rounding, and their vectors arbitrary"
    assert problems_of_ties(sizes(gap, gap), "sizes") == [words if tied else None]


@pytest.mark.parametrize(("ties", "columns", "tied"), [(1, 20, False), (2, 20, True), (1, 19, True), (1, 2, True)])
def test_a_tenth_of_the_columns_may_tie(ties, columns, tied):
    assert (problems_of_ties(sizes(*[0.0] * ties, columns=columns), "sizes") != [None]) is tied


def test_one_column_or_none_cannot_tie_and_missing_sizes_do_not():
    assert problems_of_ties(torch.ones(2, 1), "sizes") == [None, None]
    assert problems_of_ties(torch.ones(2, 0), "sizes") == [None, None]
    assert problems_of_ties(torch.full((1, 4), torch.nan), "sizes") == [None]
