"""Variants swapped into timm and transformers models: they run, train, save, load, and go away again."""

import pytest
import torch
from safetensors.torch import load_file, save_file

import attnaudit
from attnaudit.attention import VARIANTS, SoftmaxAttention, ksvd_loss, swap
from attnaudit.attention.layers import swappable_layers
from attnaudit.errors import AttnAuditError

OPTIONS = {
    "softmax": {},
    "symmetric": {},
    "scaled": {},
    "scaled learned": {"form": "learned"},
    "scaled exact": {"form": "exact"},
    "rpc": {"iterations": 3},
    "rpc asymmetric": {"asymmetric": True, "preset": "paper"},
    "primal": {"rank": 4},
}


def deit():
    timm = pytest.importorskip("timm")
    torch.manual_seed(0)
    model = timm.create_model("deit_tiny_patch16_224", img_size=32, num_classes=10)
    return model.eval(), lambda m: m(torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))), 5


def vit():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.ViTConfig(hidden_size=24, num_hidden_layers=3, num_attention_heads=3, intermediate_size=32,
                                    image_size=8, patch_size=2)  # fmt: skip
    pixels = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    return transformers.ViTModel(config).eval(), lambda m: m(pixel_values=pixels).last_hidden_state, 17


def bert():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=50, hidden_size=24, num_hidden_layers=3, num_attention_heads=3,
                                     intermediate_size=32)  # fmt: skip
    words = torch.randint(0, 50, (2, 9), generator=torch.Generator().manual_seed(1))
    seen = torch.ones_like(words)
    seen[1, 5:] = 0

    def run(model):
        return model(input_ids=words, attention_mask=seen).last_hidden_state[:, :5]

    return transformers.BertModel(config).eval(), run, 9


MODELS = {"deit": deit, "vit": vit, "bert": bert}


def arguments(name, tokens):
    variant, _, kind = name.partition(" ")
    return variant, {**OPTIONS[name], **({"tokens": tokens} if kind == "learned" else {})}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("model", MODELS)
class TestEveryVariantInEveryModel:
    def test_forward_backward_save_load_and_undo(self, model, name, tmp_path):
        network, run, tokens = MODELS[model]()
        variant, options = arguments(name, tokens)
        with torch.no_grad():
            before = run(network)
        keys = list(network.state_dict())
        change = swap(network, variant, layers=[0, -1], **options)
        output = run(network.train())
        (output.square().sum() + (ksvd_loss(network) if variant == "primal" else 0)).backward()
        swapped = [layer for layer in network.modules() if isinstance(layer, VARIANTS[variant].module)]
        assert len(swapped) == 2
        assert all(p.grad is not None and p.grad.isfinite().all() for layer in swapped for p in layer.parameters())
        network.eval()
        with torch.no_grad():
            trained = run(network)
        save_file({k: v.contiguous() for k, v in network.state_dict().items()}, tmp_path / "weights.safetensors")
        other, _, _ = MODELS[model]()
        swap(other, variant, layers=[0, -1], **options)
        with torch.no_grad():
            for parameter in other.parameters():
                parameter.zero_()
        other.load_state_dict(load_file(tmp_path / "weights.safetensors"))
        with torch.no_grad():
            assert torch.equal(run(other), trained)
        change.undo()
        with torch.no_grad():
            assert torch.equal(run(network), before)
        assert list(network.state_dict()) == keys

    def test_captured_with_what_it_used(self, model, name):
        network, _, tokens = MODELS[model]()
        variant, options = arguments(name, tokens)
        swap(network, variant, layers=[1], **options)
        inputs = {
            "deit": torch.randn(2, 3, 32, 32),
            "vit": {"pixel_values": torch.randn(2, 3, 8, 8)},
            "bert": {"input_ids": torch.randint(0, 50, (2, 9))},
        }[model]
        found = attnaudit.capture(network, inputs)
        layers = len(swappable_layers(network))
        if variant == "primal":
            assert len(found.layers) == layers - 1
            (heads,) = found.primal.values()
            assert len(heads) == len(found.layers[0])
            assert not found.refusals
            return
        assert len(found.layers) == layers
        assert not found.refusals
        assert found.certificate.worst < 1e-5
        heads = found.layers[1]
        if variant == "symmetric" or name == "rpc":
            assert torch.equal(heads.query, heads.key)
        layer = next(layer for layer in network.modules() if isinstance(layer, VARIANTS[variant].module))
        passes = []
        layer.observe = passes.append
        with torch.no_grad():
            network(**inputs) if isinstance(inputs, dict) else network(inputs)
        assert torch.equal(heads.query, passes[-1].query.flatten(0, 1))
        assert torch.equal(heads.key, passes[-1].key.flatten(0, 1))
        assert len(passes) == {"rpc": 3, "rpc asymmetric": 4}.get(name, 1)


@pytest.mark.parametrize("model", MODELS)
def test_softmax_with_the_same_weights_is_the_same_model(model):
    network, run, _ = MODELS[model]()
    with torch.no_grad():
        before = run(network)
        swap(network, "softmax")
        torch.testing.assert_close(run(network), before, rtol=1e-5, atol=1e-5)


def test_says_what_it_kept_dropped_and_added():
    network, _, _ = deit()
    text = repr(swap(network, "rpc", layers=[0]))
    assert text == "Swap(rpc into VisionTransformer)\n  layer 0 (blocks.0.attn): kept key, value, output; dropped query"
    (layer,) = swap(network, "primal", layers=[1], rank=4).layers
    assert layer.dropped == ("value",)
    assert "weight_e" in layer.new
    (layer,) = swap(network, "scaled", layers=[0]).layers  # the symmetric layer of before has no queries
    assert layer.new == ("query", "alpha")
    (layer,) = swap(network, "softmax", layers=[0]).layers
    assert layer.dropped == ("alpha",)
    (layer,) = swap(bert()[0], "symmetric", layers=[0]).layers
    assert layer.kept == ("key", "value")  # BERT projects the output elsewhere


def test_undo_follows_the_model():
    network, run, _ = bert()
    network.train()
    change = swap(network, "rpc")
    network.eval().double()
    change.undo()
    assert all(not module.training for module in network.modules())
    with torch.no_grad():
        assert torch.equal(run(network), run(network))


def test_swaps_are_undone_in_reverse_order_and_once():
    network, run, _ = deit()
    with torch.no_grad():
        before = run(network)
        first = swap(network, "rpc")
        second = swap(network, "symmetric")
        with pytest.raises(AttnAuditError, match="undo the last swap"):
            first.undo()
        second.undo()
        first.undo()
        assert torch.equal(run(network), before)
        swap(network, "symmetric")
        first.undo()
        assert not torch.equal(run(network), before)


def test_a_layer_that_is_used_twice_is_swapped_in_both_places():
    timm = pytest.importorskip("timm.layers")
    shared = torch.nn.ModuleDict({"a": timm.Attention(12, 3)})
    shared["b"] = shared["a"]
    change = swap(shared, "symmetric")
    assert shared["a"] is shared["b"]
    assert len(change.layers) == 1
    change.undo()
    assert isinstance(shared["b"], timm.Attention)


def test_frozen_layers_stay_frozen():
    network, _, _ = deit()
    network.requires_grad_(False)
    swap(network, "rpc", layers=[0])
    assert not any(parameter.requires_grad for parameter in network.parameters())


def test_what_transformers_may_ask_for_and_cannot_have_is_an_error():
    network, _, _ = bert()
    swap(network, "primal", layers=[0], rank=4)
    words = torch.zeros(1, 6, dtype=torch.long)
    causal = torch.ones(1, 1, 6, 6, dtype=torch.bool).tril()
    with pytest.raises(AttnAuditError, match="mask differs between queries"):
        network(input_ids=words, attention_mask=causal)
    layer = swappable_layers(network)[0].module
    x = torch.randn(1, 6, 24)
    with pytest.raises(AttnAuditError, match="past_key_values"):
        layer(x, past_key_values=object())
    with pytest.raises(AttnAuditError, match="attention weights"):
        layer(x, output_attentions=True)


def test_undone_at_the_end_of_a_block():
    network, run, _ = deit()
    with torch.no_grad():
        before = run(network)
        with swap(network, "symmetric"):
            assert not torch.equal(run(network), before)
        assert torch.equal(run(network), before)


def test_a_swapped_model_is_audited_like_any_other():
    network, _, _ = deit()
    swap(network, "rpc", layers=[0], iterations=2)
    run = attnaudit.audit(network, torch.randn(2, 3, 32, 32), claims=["kpca-values"], references=["gaussian"])
    assert run.verdicts


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("training", [True, False])
def test_undo_restores_the_mode_of_every_module(name, training):
    network, run, _ = MODELS[name]()
    network.train(training)
    before = [module.training for module in network.modules()]
    first = swap(network, "symmetric", layers=[0])
    second = swap(network, "softmax", layers=[0])
    assert all(module.training is training for module in network.modules())
    second.undo()
    first.undo()
    assert [module.training for module in network.modules()] == before
    if not training:
        assert torch.equal(run(network), run(network))


def test_trained_mode_and_dropout_are_kept():
    network, _, _ = bert()
    network.train()
    swap(network, "symmetric", layers=[0])
    layer = swappable_layers(network)[0].module.inner
    assert layer.training
    assert layer.attn_drop.p == 0.1


def test_norms_of_queries_and_keys_are_kept():
    timm = pytest.importorskip("timm")
    model = timm.create_model("vit_tiny_patch16_224", img_size=32, qk_norm=True).eval()
    x = torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.LayerNorm):
                module.weight.uniform_(0.5, 1.5)
        before = model(x)
        swap(model, "softmax")
        assert isinstance(model.blocks[0].attn, SoftmaxAttention)
        torch.testing.assert_close(model(x), before, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("variant", "options", "message"),
    [
        ("other", {}, "'other'.* softmax, symmetric, scaled, rpc, primal"),
        ("rpc", {"layers": [12]}, "has 12 attention layers, numbered from 0, got layer 12"),
        ("rpc", {"iteratons": 3}, "'iteratons' of rpc attention: did you mean iterations"),
        ("softmax", {"iterations": 3}, "'iterations' of softmax attention. Known: temperature"),
        ("rpc", {"layers": 0}, r"such as \[0\]"),
        ("rpc", {"iterations": 0}, "iterations .* got 0"),
        ("rpc", {"attn_drop": 0.5, "dtype": None}, "attn_drop, dtype"),
        ("primal", {"rank": 65}, "64, got 65"),
    ],
)
def test_what_does_not_fit_is_an_error_and_changes_nothing(variant, options, message):
    network, run, _ = deit()
    with torch.no_grad():
        before = run(network)
        with pytest.raises(AttnAuditError, match=message):
            swap(network, variant, **options)
        assert torch.equal(run(network), before)


def test_models_without_known_attention_are_an_error():
    with pytest.raises(AttnAuditError, match="Sequential"):
        swap(torch.nn.Sequential(torch.nn.Linear(2, 2)), "rpc")
    with pytest.raises(AttnAuditError, match="inside a model"):
        swap(SoftmaxAttention(12, 3), "rpc")


def test_decoders_are_refused():
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(hidden_size=24, num_hidden_layers=1, num_attention_heads=3, intermediate_size=32,
                                     vocab_size=50, is_decoder=True)  # fmt: skip
    with pytest.raises(AttnAuditError, match="decoder"):
        swap(transformers.BertModel(config), "rpc")


def test_a_layer_that_is_named_twice_is_swapped_once():
    model, run, _ = vit()
    before = run(model)
    with swap(model, "symmetric", [0, -3]) as change:
        assert [layer.layer for layer in change.layers] == [0]
    assert torch.equal(run(model), before)
