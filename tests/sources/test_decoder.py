"""The language model: causal with every variant, and built from numbers and a seed."""

import pytest
import torch

from attnaudit.attention import VARIANTS
from attnaudit.capture import capture
from attnaudit.errors import ShapeError, UsageError
from attnaudit.records.architecture import DecoderArchitecture
from attnaudit.sources.decoder import build_decoder

WORDS, CONTEXT = 11, 9
CHOICES = {
    "softmax": {},
    "symmetric": {"attention": "symmetric"},
    "scaled-alpha": {"attention": "scaled"},
    "scaled-exact": {"attention": "scaled", "attention_options": {"form": "exact"}},
    "scaled-learned": {"attention": "scaled", "attention_options": {"form": "learned"}},
    "rpc-code": {"attention": "rpc", "attention_layers": (0,), "other_attention": "symmetric"},
    "rpc-code-clipping": {"attention": "rpc", "attention_options": {"iterations": 3, "lam": 0.02}},
    "rpc-paper": {"attention": "rpc", "attention_options": {"preset": "paper", "lam": 0.5}},
    "rpc-asymmetric": {"attention": "rpc", "attention_options": {"asymmetric": True, "lam": 0.02}},
    "primal": {"attention": "primal", "attention_options": {"rank": 4}},
}


def decoder(seed=0, **choice):
    model = build_decoder(
        DecoderArchitecture(vocabulary=WORDS, context=CONTEXT, width=16, depth=2, heads=2, **choice), seed
    ).double()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():  # zero-initialised ones would hide what they do, and all start small
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return model


def words(seed=0, count=CONTEXT):
    return torch.randint(WORDS, (2, count), generator=torch.Generator().manual_seed(seed))


def test_every_variant_is_tried():
    assert {choice.get("attention", "softmax") for choice in CHOICES.values()} == set(VARIANTS)


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
def test_what_is_still_to_come_changes_nothing(choice):
    model, text = decoder(**choice), words()
    before = model(text)
    for place in range(1, CONTEXT):
        changed = text.clone()
        changed[:, place:] = (changed[:, place:] + 1 + place) % WORDS
        after = model(changed)
        torch.testing.assert_close(after[:, :place], before[:, :place], rtol=0, atol=1e-12)
        assert not torch.allclose(after[:, place], before[:, place])


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
def test_what_was_read_changes_what_follows(choice):
    model, text = decoder(**choice), words()
    changed = text.clone()
    changed[:, 0] = (changed[:, 0] + 1) % WORDS
    assert not torch.allclose(model(changed)[:, -1], model(text)[:, -1])


def test_a_shorter_text_is_read_as_the_beginning_of_a_longer_one():
    model, text = decoder(), words()
    torch.testing.assert_close(model(text[:, :4]), model(text)[:, :4], rtol=0, atol=1e-12)


def test_a_text_longer_than_the_context_is_refused():
    with pytest.raises(ShapeError, match=r"at most 9 words .* got 10"):
        decoder()(words(count=10))


def test_the_output_weights_are_the_words_themselves():
    model = decoder()
    assert [name for name, tensor in model.named_parameters() if WORDS in tensor.shape] == ["words.weight"]


def test_the_chosen_layers_have_the_variant_and_the_others_theirs():
    model = build_decoder(
        DecoderArchitecture(
            width=16, depth=3, heads=2, attention="rpc", attention_layers=(-3, 1), other_attention="symmetric"
        ),
        0,
    )
    kinds = [type(block.attn).__name__ for block in model.blocks]
    assert kinds == ["RPCAttention", "RPCAttention", "SymmetricAttention"]


def test_the_seed_decides_the_weights():
    first, again, other = (build_decoder(DecoderArchitecture(width=12, heads=2), seed) for seed in (1, 1, 2))
    assert torch.equal(first.words.weight, again.words.weight)
    assert not torch.equal(first.words.weight, other.words.weight)


@pytest.mark.parametrize("name", [name for name in CHOICES if name != "primal"])
def test_causal_heads_are_captured_with_their_mask_and_replay(name):
    seen = capture(decoder(**CHOICES[name]), words())
    assert seen.refusals == ()
    assert seen.certificate.worst < 1e-12
    hidden = torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).triu(1)
    for layer in seen.layers:
        assert (layer.bias[..., hidden] == -torch.inf).all()
        assert (layer.bias[..., ~hidden] == 0).all()


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        ({"heads": 5}, "a width of 192 does not split into 5 heads."),
        ({"depth": 0}, "depth must be ≥ 1, got 0."),
        ({"dropout": 1.0}, "dropout must be ≥ 0 and < 1, got 1."),
        ({"attention": "rpc", "other_attention": "symmetric"}, "attention_layers leaves no other block"),
    ],
)
def test_numbers_that_make_no_model_are_refused(numbers, sentence):
    with pytest.raises(UsageError) as error:
        DecoderArchitecture(**numbers)
    assert sentence in str(error.value)
