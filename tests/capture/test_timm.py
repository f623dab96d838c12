"""Real architectures with random weights, fused attention on and off."""

import copy

import pytest
import torch

from attnaudit.capture import capture
from attnaudit.errors import CaptureError

timm = pytest.importorskip("timm")
from timm.layers import set_fused_attn  # noqa: E402

MODELS = {
    "vit": ("vit_tiny_patch16_224", {"depth": 3}),
    "deit": ("deit_tiny_patch16_224", {"depth": 3}),
    "distilled deit": ("deit_tiny_distilled_patch16_224", {"depth": 3}),
    "beit": ("beit_base_patch16_224", {"depth": 2}),
    "eva-02": ("eva02_tiny_patch14_224", {"depth": 2}),
    "dinov2": ("vit_small_patch14_dinov2", {"depth": 2, "img_size": 224}),
    "swin": ("swin_tiny_patch4_window7_224", {"depths": (2, 2), "num_heads": (3, 6)}),
    "swin v2": ("swinv2_tiny_window8_256", {"depths": (2, 2), "num_heads": (3, 6)}),
}


@pytest.fixture(params=[True, False], ids=["fused", "eager"])
def fused(request):
    set_fused_attn(request.param)
    yield request.param
    set_fused_attn(True)


def build(name, **options):
    torch.manual_seed(0)
    return timm.create_model(name, **options)


def batch(model, size=2):
    return torch.randn(size, *model.pretrained_cfg["input_size"], generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("architecture", MODELS)
def test_every_layer_is_captured_with_a_certificate(architecture, fused):
    name, options = MODELS[architecture]
    model = build(name, **options)
    size = model.patch_embed.img_size
    inputs = torch.randn(2, 3, *size, generator=torch.Generator().manual_seed(1))
    result = capture(model, inputs)
    depth = options["depth"] if "depth" in options else sum(options["depths"])
    assert len(result.layers) == depth
    assert result.refusals == ()
    assert result.certificate.worst < 1e-5
    for number, heads in enumerate(result.layers):
        assert {entry.layer for entry in heads.index} == {number}
        assert {entry.input for entry in heads.index} == {"input-0", "input-1"}
        assert heads.prefix_tokens == getattr(model, "num_prefix_tokens", 0)


def test_queries_keys_and_values_are_those_of_the_qkv_layer(fused):
    model = build("deit_tiny_patch16_224", depth=2).eval()
    seen = {}
    hook = model.blocks[1].attn.qkv.register_forward_hook(lambda m, i, out: seen.update(qkv=out))
    heads = capture(model, batch(model)).layers[1]
    hook.remove()
    query, key, value = seen["qkv"].reshape(2, 197, 3, 3, 64).permute(2, 0, 3, 1, 4).reshape(3, 6, 197, 64)
    torch.testing.assert_close(heads.query, query)
    assert torch.equal(heads.key, key)
    assert torch.equal(heads.value, value)
    assert heads.scale.tolist() == [0.125] * 6
    assert heads.source.shape == (2, 197, 192)
    assert [(entry.input, entry.head) for entry in heads.index[:4]] == [
        ("input-0", 0), ("input-0", 1), ("input-0", 2), ("input-1", 0),
    ]  # fmt: skip


def test_fused_and_eager_attention_give_the_same_heads():
    captures = {}
    for on in (True, False):
        set_fused_attn(on)
        model = build("beit_base_patch16_224", depth=2)
        captures[on] = capture(model, batch(model)).heads
    set_fused_attn(True)
    for name in ("query", "key", "value", "output", "scale", "bias"):
        torch.testing.assert_close(getattr(captures[True], name), getattr(captures[False], name), rtol=1e-4, atol=1e-5)


def test_the_model_is_bit_identical_afterwards(fused):
    model = build("deit_tiny_patch16_224", depth=2).train()
    model.blocks[0].eval()
    inputs = batch(model)
    twin = copy.deepcopy(model)
    modes = [module.training for module in model.modules()]
    random_state = torch.get_rng_state()
    capture(model, inputs)
    assert torch.equal(torch.get_rng_state(), random_state)
    assert [module.training for module in model.modules()] == modes
    for module in model.modules():
        assert not module._forward_hooks
        assert not module._forward_pre_hooks
    for ours, theirs in zip(model.state_dict().values(), twin.state_dict().values(), strict=True):
        assert torch.equal(ours, theirs)
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())
    assert torch.equal(model.eval()(inputs), twin.eval()(inputs))


def test_hooks_are_gone_after_a_failed_forward():
    model = build("deit_tiny_patch16_224", depth=2)
    with pytest.raises(CaptureError, match=r"fails on input-0 \(AssertionError"):
        capture(model, torch.randn(1, 3, 100, 100))
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_swin_windows_belong_to_their_input():
    model = build("swin_tiny_patch4_window7_224", depths=(2, 2), num_heads=(3, 6)).eval()
    inputs = batch(model)
    together, alone = capture(model, inputs).layers[0], capture(model, inputs[1:]).layers[0]
    mine = [place for place, entry in enumerate(together.index) if entry.input == "input-1"]
    assert {together.index[place].window for place in mine} == set(range(64))
    torch.testing.assert_close(together.value[mine], alone.value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "layer", "reason"),
    [
        ("cait_xxs24_224", "blocks.0.attn", "talking heads"),
        ("xcit_nano_12_p16_224", "blocks.0.attn", "channels instead of tokens"),
    ],
)
def test_other_attention_is_refused_with_layer_and_reason(name, layer, reason, fused):
    from attnaudit.errors import CaptureError

    model = build(name)
    try:
        refusals = [f"{r.layer}: {r.reason}" for r in capture(model, batch(model, 1)).refusals]
    except CaptureError as error:
        refusals = [str(error)]
    assert any(layer in text and reason in text for text in refusals)
