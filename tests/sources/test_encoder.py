"""Encoders that name sentences: pretrained as far as attention permits, blind to padding, rebuilt from their card."""

from dataclasses import replace

import pytest
import torch

from attnaudit.attention import RPCAttention, SymmetricAttention
from attnaudit.errors import ModelError, UsageError
from attnaudit.records.architecture import EncoderArchitecture
from attnaudit.sources.encoder import SentenceTokens, build_encoder, read_encoder
from tests.sentence_data import SMALL, write_encoder
from tests.sources.hf_folders import tiny_bert, tiny_weights

pytest.importorskip("transformers")
ATTENTIONS = {
    "softmax": {},
    "symmetric": {"attention": "symmetric"},
    "rpc": {"attention": "rpc", "attention_options": {"iterations": 2}},
    "asymmetric rpc": {"attention": "rpc", "attention_options": {"iterations": 2, "asymmetric": True}},
    "rpc in a layer": {"attention": "rpc", "attention_layers": (0,), "attention_options": {"asymmetric": True}},
}


@pytest.fixture
def encoder(tmp_path):
    return read_encoder(str(write_encoder(tmp_path / "encoder")))


def architecture(**more):
    return EncoderArchitecture(encoder="tiny", depth=2, **SMALL, **more)


@pytest.mark.parametrize("attention", ATTENTIONS.values(), ids=ATTENTIONS)
def test_padding_changes_nothing(encoder, attention):
    model = encoder.classifier(architecture(**attention), seed=0)
    texts = ["the cat sleeps", "the dog runs under the tree"]
    short, long = (SentenceTokens(encoder.tokenizer, 0, length)(texts) for length in (9, 16))
    with torch.no_grad():
        torch.testing.assert_close(model(short), model(long), rtol=0, atol=1e-5)
        alone = SentenceTokens(encoder.tokenizer, 0, 5)(texts[:1])
        torch.testing.assert_close(model(alone), model(long)[:1], rtol=0, atol=1e-5)


def test_pretrained_projections_are_kept_where_the_attention_has_them(encoder):
    weights = tiny_weights()
    model = encoder.classifier(architecture(**ATTENTIONS["asymmetric rpc"]), seed=0)
    layers = [layer for layer in model.modules() if isinstance(layer, RPCAttention)]
    assert [layer.rule.iterations for layer in layers] == [2, 2]
    names = [f"encoder.layer.1.attention.self.{name}.weight" for name in ("query", "key", "value")]
    torch.testing.assert_close(layers[1].projection.weight, torch.cat([weights[name] for name in names]))


def test_symmetric_attention_drops_the_queries(encoder):
    model = encoder.classifier(architecture(attention="symmetric"), seed=0)
    layers = [layer for layer in model.modules() if isinstance(layer, SymmetricAttention)]
    assert [layer.projections for layer in layers] == ["kv", "kv"]


def test_the_seed_draws_the_classifier_and_nothing_pretrained(encoder):
    first, again, other = (encoder.classifier(architecture(), seed) for seed in (0, 0, 1))
    same = {name for name, own in first.state_dict().items() if torch.equal(own, other.state_dict()[name])}
    assert set(first.state_dict()) - same == {"classifier.weight"}
    assert all(torch.equal(own, again.state_dict()[name]) for name, own in first.state_dict().items())


def test_what_is_not_trained_is_left_out(encoder):
    assert not [name for name in encoder.classifier(architecture(), 0).state_dict() if "pooler" in name]


@pytest.mark.parametrize("attention", ATTENTIONS.values(), ids=ATTENTIONS)
def test_a_config_builds_the_network_that_the_weights_fit(encoder, attention):
    own = architecture(**attention)
    trained, built = encoder.classifier(own, 0), build_encoder(encoder.config, own, 1)
    built.load_state_dict(trained.state_dict())
    tokens = SentenceTokens(encoder.tokenizer, 0, 16)(["the dog runs"])
    with torch.no_grad():
        torch.testing.assert_close(built(tokens), trained(tokens))


def test_half_precision_weights_are_fine_tuned_in_single(tmp_path):
    halves = {name: own.half() if own.is_floating_point() else own for name, own in tiny_weights().items()}
    found = read_encoder(str(tiny_bert(tmp_path / "half", halves)))
    assert {own.dtype for own in found.classifier(architecture(), 0).parameters()} == {torch.float32}


def test_longer_sentences_are_cut(encoder):
    tokens = SentenceTokens(encoder.tokenizer, 0, 6)(["the dog runs " * 9])
    assert tokens.shape == (1, 6)
    assert (tokens != 0).all()


def test_a_length_with_no_room_for_a_token_of_the_sentence_is_refused(encoder):
    tokenizers = pytest.importorskip("tokenizers")
    added = tokenizers.Tokenizer.from_str(encoder.tokenizer).num_special_tokens_to_add(False)
    SentenceTokens(encoder.tokenizer, 0, added + 1)
    with pytest.raises(UsageError, match=f"must be ≥ {added + 1} tokens, .*got {added}"):
        SentenceTokens(encoder.tokenizer, 0, added)


def test_the_depth_is_that_of_the_encoder(encoder):
    assert encoder.depth == 2
    assert replace(architecture(), depth=encoder.depth).depth == 2


@pytest.mark.parametrize(
    ("change", "words"), [({"is_decoder": True}, "is not an encoder"), ({"pad_token_id": None}, "has no pad_token_id")]
)
def test_what_cannot_be_fine_tuned_is_said(encoder, change, words):
    with pytest.raises(ModelError, match=words):
        build_encoder({**encoder.config, **change}, architecture(), 0)
