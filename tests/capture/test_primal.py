"""Primal-Attention in a forward pass: its heads, or the reason why there is no one kernel."""

import pytest
import torch
from torch import nn

import attnaudit
from attnaudit import attention
from attnaudit.capture.primal import recording_primal
from attnaudit.errors import CaptureError, ShapeError
from attnaudit.kernel.primal import primal_scores
from tests.primal_models import Calling, images, mask, vision_transformer


@pytest.mark.parametrize("layer", [0, 2])
def test_primal_heads_keep_the_number_and_the_inputs_of_their_layer(layer):
    captured = attnaudit.capture(vision_transformer(layer), images(2), ["a", "b"])
    assert list(captured.primal) == [f"blocks.{layer}.attn"]
    (heads,) = captured.primal.values()
    assert [(entry.input, entry.layer, entry.head) for entry in heads.index] == [
        ("a", layer, 0), ("a", layer, 1), ("b", layer, 0), ("b", layer, 1),
    ]  # fmt: skip
    assert (heads.tokens, heads.dim) == (17, 4)
    assert {entry.layer for entry in captured.heads.index} == {0, 1, 2} - {layer}
    assert captured.refusals == ()
    assert "1 of Primal-Attention" in repr(captured)


def test_scores_are_those_of_the_forward_pass():
    layer = attention.PrimalAttention(8, 2, rank=2, tokens=17).double()
    x = torch.randn(3, 17, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    (heads,) = attnaudit.capture(layer, x).primal.values()
    e, r = primal_scores(heads)
    combined = layer.combine(torch.cat([e, r], dim=-1)).unflatten(0, (3, 2))
    torch.testing.assert_close(layer.proj(combined.transpose(1, 2).flatten(2)), layer(x))


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (Calling(mask(2)), "padded inputs have kernels of different sizes"),
        (Calling(attn_mask=mask(1)), "padded inputs have kernels of different sizes"),
        (Calling(is_causal=True), "a causal layer has another kernel for every token"),
        (Calling(times=2), "it runs several times in a forward pass"),
    ],
)
def test_a_layer_without_one_kernel_is_refused_once(model, reason):
    captured = attnaudit.capture(model, torch.randn(2, 17, 8))
    assert captured.primal == {}
    assert [(refusal.layer, refusal.reason) for refusal in captured.refusals] == [("primal", reason)]


def test_a_mask_that_hides_nothing_changes_nothing():
    model, inputs = Calling(mask(0)), torch.randn(2, 17, 8)
    masked = attnaudit.capture(model, inputs).primal["primal"]
    model.args = ()
    plain = attnaudit.capture(model, inputs).primal["primal"]
    for name, value in vars(plain).items():
        assert torch.equal(value, vars(masked)[name]) if isinstance(value, torch.Tensor) else True


def test_a_model_of_nothing_but_primal_attention_has_no_heads_of_softmax():
    layers = [attention.PrimalAttention(8, 2, rank=2, tokens=17) for _ in range(3)]
    captured = attnaudit.capture(nn.Sequential(*layers), torch.randn(2, 17, 8))
    assert [heads.index[0].layer for heads in captured.primal.values()] == [0, 1, 2]
    assert captured.layers == ()
    with pytest.raises(ShapeError, match="no heads of softmax"):
        _ = captured.heads
    with pytest.raises(CaptureError, match="a causal layer has another kernel"):
        attnaudit.capture(CausalOnly(), torch.randn(2, 17, 8))


class CausalOnly(nn.Module):
    def __init__(self):
        super().__init__()
        self.primal = attention.PrimalAttention(8, 2, rank=2, data_dependent=False)

    def forward(self, x):
        return self.primal(x, is_causal=True)


def test_no_hook_is_left_behind_even_if_the_pass_fails():
    model = vision_transformer()
    with pytest.raises(AssertionError), recording_primal(model, 3, 2):
        model(torch.randn(3, 3, 16, 15))
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_the_model_is_afterwards_what_it_was():
    model = vision_transformer().train()
    model.blocks[0].eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    attnaudit.capture(model, images())
    assert [block.training for block in model.blocks] == [False, True, True]
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
