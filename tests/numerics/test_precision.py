"""Mixed precision: short products where they are asked for, and nowhere else."""

import pytest
import torch

from attnaudit.numerics.precision import autocast, matmul_precision


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


def fused() -> bool:
    """Whether torch may use its fused kernel of attention."""
    return torch.backends.cuda.flash_sdp_enabled()


def test_attention_is_written_out_where_the_fused_backward_pass_is_slow():
    allowed = fused()
    with autocast(torch.device("cpu"), "bf16"):
        assert not fused()
        assert torch.is_autocast_enabled("cpu")
    assert fused() == allowed
    assert not torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_attention_may_be_fused_where_no_gradient_is_wanted(precision):
    allowed = fused()
    with torch.no_grad(), autocast(torch.device("cpu"), precision):
        assert fused() == allowed


def test_written_out_attention_has_the_gradients_of_the_fused_kernel():
    tokens = torch.randn(2, 3, 17, 32, generator=torch.Generator().manual_seed(0)).requires_grad_()
    found = []
    for precision in ("bf16", "fp32"):
        with autocast(torch.device("cpu"), precision):
            attended = torch.nn.functional.scaled_dot_product_attention(tokens, tokens, tokens)
        found += torch.autograd.grad(attended.float().square().sum(), tokens)
    torch.testing.assert_close(found[0], found[1], rtol=0.05, atol=0.05)
