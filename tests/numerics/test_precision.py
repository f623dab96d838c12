"""Mixed precision: short products where they are asked for, and nowhere else."""

import pytest
import torch

from attnaudit.numerics.precision import matmul_precision


@pytest.fixture(autouse=True, params=["highest", "medium"])
def before(request):
    """What the process had set."""
    default = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(request.param)
    yield request.param
    torch.set_float32_matmul_precision(default)


def test_products_are_short_inside_and_as_they_were_afterwards(before):
    with matmul_precision("tf32"):
        assert torch.get_float32_matmul_precision() == "high"
    assert torch.get_float32_matmul_precision() == before


def test_products_are_as_they_were_after_an_exception(before):
    with pytest.raises(KeyError), matmul_precision("tf32"):
        raise KeyError
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_other_precisions_leave_products_alone(before, precision):
    with matmul_precision(precision):
        assert torch.get_float32_matmul_precision() == before
