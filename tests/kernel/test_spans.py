"""Coordinates in a span are those in an orthonormal basis of it, up to the choice of the basis."""

import pytest
import torch

from attnaudit.kernel.spans import Span

HEADS, TOKENS, DIM = 3, 20, 5


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def overlap(columns, other):
    """‖QᵀB‖² by Householder QR."""
    return (torch.linalg.qr(columns)[0].mT @ other).square().sum(dim=(1, 2))


@pytest.mark.parametrize("dependence", [1.0, 1e-2, 1e-5, 1e-9])
def test_columns_may_be_almost_dependent(dependence):
    columns, other = drawn(HEADS, TOKENS, DIM), drawn(HEADS, TOKENS, 4, seed=1)
    columns[1, :, 0] = columns[1, :, 1] + dependence * columns[1, :, 0]
    found = Span.of(columns).coordinates(other)
    torch.testing.assert_close(found.square().sum(dim=(1, 2)), overlap(columns, other), rtol=1e-9, atol=0)


def test_coordinates_of_the_columns_themselves_keep_all_products():
    columns = drawn(HEADS, TOKENS, DIM)
    found = Span.of(columns).coordinates(columns)
    torch.testing.assert_close(found.mT @ found, columns.mT @ columns)


def test_more_columns_than_tokens_span_everything():
    columns, other = drawn(HEADS, 4, DIM), drawn(HEADS, 4, 3, seed=1)
    found = Span.of(columns).coordinates(other)
    torch.testing.assert_close(found.mT @ found, other.mT @ other)


def test_a_head_that_is_not_finite_leaves_its_neighbours_alone():
    columns, other = drawn(HEADS, TOKENS, DIM), drawn(HEADS, TOKENS, 4, seed=1)
    columns[0, 0, 0] = torch.nan
    found = Span.of(columns).coordinates(other).square().sum(dim=(1, 2))
    assert found[0].isnan()
    torch.testing.assert_close(found[1:], overlap(columns[1:], other[1:]))
