"""Attention that runs where no operation can be seen, in an operation of the model's own or in another thread."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnaudit.capture import capture
from attnaudit.errors import CaptureError
from tests.capture.ways import INPUTS, OneLayer


@torch.library.custom_op("attnaudit_test::attention", mutates_args=())
def hidden_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(query, key, value)


@torch.library.custom_op("attnaudit_test::written_attention", mutates_args=("output",))
def attention_into(query: Tensor, key: Tensor, value: Tensor, output: Tensor) -> None:
    output.copy_(F.scaled_dot_product_attention(query, key, value))


@torch.library.custom_op("attnaudit_test::swish", mutates_args=())
def swish(x: Tensor, slope: Tensor) -> Tensor:
    return x * torch.sigmoid(slope * x)


def hidden_attention_into(query, key, value):
    output = torch.empty_like(query)
    attention_into(query, key, value, output)
    return output


def flash_attention(query, key, value):
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(query, key, value)[0]


def native(query, key, value):
    """torch's kernel of a whole layer, which `nn.MultiheadAttention` runs in its fast path."""
    x = query.transpose(1, 2).flatten(2)
    width = x.shape[-1]
    weight, bias = torch.ones(3 * width, width), torch.zeros(3 * width)
    out = torch._native_multi_head_attention(
        x, x, x, width, query.shape[1], weight, bias, weight[:width], bias[:width], need_weights=False
    )[0]
    return out.unflatten(-1, (query.shape[1], -1)).transpose(1, 2)


@pytest.mark.parametrize(
    ("attend", "name"),
    [
        (hidden_attention, "attnaudit_test.attention.default"),
        (hidden_attention_into, "attnaudit_test.written_attention.default"),
        (native, "aten._native_multi_head_attention.default"),
    ],
)
def test_attention_in_an_operation_of_its_own_is_refused_by_its_name_and_that_of_its_module(attend, name):
    fused = F.scaled_dot_product_attention
    result = capture(nn.Sequential(OneLayer(fused), OneLayer(attend), OneLayer(fused)), INPUTS[:1])
    assert result.layer_names == ("0", "2")
    assert [refusal.layer for refusal in result.refusals] == ["1"]
    assert f"it runs {name}, which may be attention" in result.refusals[0].reason
    assert "1 refused" in repr(result)


@pytest.mark.parametrize(
    ("attend", "reason"),
    [
        (hidden_attention, "which input its heads belong to cannot be followed"),
        (hidden_attention_into, "which input its rows belong to is not known"),
    ],
)
def test_layers_after_an_operation_that_cannot_be_looked_into_are_credited_to_no_input_of_several(attend, reason):
    fused = F.scaled_dot_product_attention
    result = capture(nn.Sequential(OneLayer(fused), OneLayer(attend), OneLayer(fused)), INPUTS)
    assert result.layer_names == ("0",)
    assert [refusal.layer for refusal in result.refusals] == ["1", "2"]
    assert reason in result.refusals[1].reason


def test_kernels_of_torch_that_are_called_by_name_are_captured():
    assert len(capture(OneLayer(flash_attention), INPUTS).layers) == 1


def test_operations_of_one_activation_hide_no_attention():
    model = nn.Sequential(OneLayer(F.scaled_dot_product_attention), Swish())
    assert capture(model, INPUTS).refusals == ()


class Swish(nn.Module):
    def forward(self, x):
        return swish(x, torch.ones(x.shape[-1]))


class Threads(nn.Module):
    """Two layers one after the other, of which the second runs in a thread of its own."""

    def __init__(self):
        super().__init__()
        self.here = OneLayer(F.scaled_dot_product_attention)
        self.there = nn.Sequential(OneLayer(F.scaled_dot_product_attention))

    def forward(self, x):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(self.there, self.here(x)).result()


def test_layers_in_other_threads_are_refused_by_their_outermost_module():
    result = capture(Threads(), INPUTS)
    assert result.layer_names == ("here",)
    assert [refusal.layer for refusal in result.refusals] == ["there"]
    assert "another thread" in result.refusals[0].reason


def test_a_model_that_runs_in_other_threads_altogether_is_refused_with_that_reason():
    class Elsewhere(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = OneLayer(F.scaled_dot_product_attention)

        def forward(self, x):
            with ThreadPoolExecutor(2) as pool:
                return torch.cat(list(pool.map(self.layer, x.split(1))))

    with pytest.raises(CaptureError, match=r"layer: .*another thread"):
        capture(Elsewhere(), INPUTS)
