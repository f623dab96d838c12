"""Products are those of torch, whatever the order of their operands in memory."""

import pytest
import torch

from attnaudit.numerics.products import product, squares

ORDERS = {
    "rows": lambda x: x.contiguous(),
    "columns": lambda x: x.mT.contiguous().mT,
    "every other column": lambda x: torch.stack([x, -x], dim=-1).flatten(-2)[..., ::2],
    "shared": lambda x: x[:1].expand_as(x),
}


def drawn(*shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=dtype)


@pytest.mark.parametrize("left", ORDERS)
@pytest.mark.parametrize("right", ORDERS)
def test_the_order_in_memory_does_not_matter(left, right):
    one, other = ORDERS[left](drawn(3, 5, 7)), ORDERS[right](drawn(3, 7, 4))
    torch.testing.assert_close(product(one, other), one @ other)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_precision_stays(dtype):
    x = drawn(2, 6, 3, dtype=dtype)
    assert squares(x).dtype == dtype
    torch.testing.assert_close(squares(x), x.mT @ x)


def test_batches_of_different_shapes_are_multiplied_as_torch_does():
    inputs, weights = drawn(4, 1, 6, 5), drawn(2, 5, 3)
    torch.testing.assert_close(product(inputs, weights), inputs @ weights)


def test_gradients_pass_through():
    x = drawn(2, 4, 3).requires_grad_()
    squares(x).sum().backward()
    assert x.grad is not None


def test_what_is_not_finite_stays_in_its_own_matrix_and_warns_of_nothing():
    x = drawn(2, 4, 3)
    x[0, 0, 0] = torch.inf
    found = squares(x)
    assert not found[0].isfinite().all()
    torch.testing.assert_close(found[1], x[1].mT @ x[1])
