"""Checkpoints that do not fit their config are refused by name; heads of tasks and poolers are said."""

import json
import logging

import pytest
import torch

import attnaudit
from attnaudit.errors import ModelError, WeightsError
from attnaudit.sources import load_model, parse_model
from tests.sources.hf_folders import TEXT, tiny_bert, tiny_weights

transformers = pytest.importorskip("transformers")


@pytest.fixture(autouse=True)
def _offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="module")
def weights():
    return tiny_weights()


def load(folder):
    return load_model(parse_model(str(folder)))


def without(weights, word):
    return {name: tensor for name, tensor in weights.items() if word not in name}


def prefixed(weights, prefix="bert."):
    return {f"{prefix}{name}": tensor for name, tensor in weights.items()}


QUERY = "encoder.layer.0.attention.self.query.weight"
MISFITS = {
    "a layer is missing": (lambda own: without(own, "layer.1."), {}, r"16 missing \(encoder\.layer\.1\."),
    "all have other names": (lambda own: prefixed(own, "net."), {}, r"missing \(embeddings\..*unexpected \(net\."),
    "more layers in the config": (dict, {"num_hidden_layers": 3}, r"16 missing \(encoder\.layer\.2\."),
    "fewer layers in the config": (dict, {"num_hidden_layers": 1}, r"16 unexpected \(encoder\.layer\.1\."),
    "fewer, with a prefix": (prefixed, {"num_hidden_layers": 1}, r"16 unexpected \(bert\.encoder\.layer\.1\."),
    "an unknown part": (lambda own: own | {"encoder.gate": torch.ones(2)}, {}, r"1 unexpected \(encoder\.gate\)"),
    "another shape": (lambda own: own | {QUERY: torch.ones(3, 3)}, {}, r"query\.weight \(3, 3\) instead of \(32, 32\)"),
    "whole numbers": (
        lambda own: own | {QUERY: torch.ones(32, 32, dtype=torch.int8)},
        {},
        r"query\.weight .*(I|int)8",
    ),
    "two of each": (lambda own: own | prefixed(own), {}, "two tensors for one parameter"),
    "a huge config": (dict, {"vocab_size": 10**9}, "describes 32,000,0"),
}


@pytest.mark.parametrize("legacy", [False, True], ids=["safetensors", "torch"])
@pytest.mark.parametrize("misfit", MISFITS)
def test_weights_that_do_not_fit_are_named(tmp_path, weights, misfit, legacy):
    change, config, named = MISFITS[misfit]
    changed = {name: tensor.clone() for name, tensor in change(dict(weights)).items()}
    with pytest.raises(WeightsError, match=named) as caught:
        load(tiny_bert(tmp_path / "bert", changed, legacy=legacy, **config))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("legacy", [False, True], ids=["safetensors", "torch"])
@pytest.mark.parametrize(
    "change",
    [
        prefixed,
        lambda own: {
            name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): t for name, t in own.items()
        },
        lambda own: own | {"embeddings.position_ids": torch.arange(64)[None]},
    ],
    ids=["of a task model", "of older files", "with buffers"],
)
def test_other_names_of_the_same_weights_are_the_same_model(tmp_path, weights, change, legacy):
    whole, other = tiny_bert(tmp_path / "a", weights), tiny_bert(tmp_path / "b", change(weights), legacy=legacy)
    assert load(whole).fingerprint == load(other).fingerprint
    assert load(other).notes == ()


def test_shards_are_the_same_model_and_a_missing_or_damaged_one_is_named(tmp_path, weights):
    whole = tiny_bert(tmp_path / "whole", weights)
    sharded = tiny_bert(tmp_path / "sharded", weights)
    transformers.AutoModel.from_pretrained(whole).save_pretrained(sharded, max_shard_size="10KB")
    (sharded / "model.safetensors").unlink(missing_ok=True)
    shards = sorted(sharded.glob("model-*.safetensors"))
    assert len(shards) > 1
    assert load(sharded).fingerprint == load(whole).fingerprint
    shards[0].write_bytes(shards[0].read_bytes()[:100])
    with pytest.raises(WeightsError, match=shards[0].name):
        load(sharded)
    shards[0].unlink()
    with pytest.raises(WeightsError, match=shards[0].name):
        load(sharded)
    (sharded / "model.safetensors.index.json").write_text("[1]")
    with pytest.raises(WeightsError, match=r"index\.json"):
        load(sharded)


def test_heads_of_tasks_are_left_out_and_said(tmp_path, weights, caplog):
    head = {"cls.predictions.bias": torch.zeros(3), "classifier.weight": torch.zeros(2, 32)}
    with caplog.at_level(logging.INFO, "attnaudit"):
        model = load(tiny_bert(tmp_path / "task", prefixed(weights) | head))
    assert model.fingerprint == load(tiny_bert(tmp_path / "plain", weights)).fingerprint
    (note,) = model.notes
    assert "classifier.weight" in note
    assert note in caplog.text


def test_a_missing_pooler_is_said_and_drawn_from_a_seed_so_that_the_run_can_be_resumed(tmp_path, weights):
    folder = tiny_bert(tmp_path / "bert", without(weights, "pooler"))
    (tmp_path / "text.txt").write_text(TEXT)
    options = {"claims": (), "references": ("gaussian",), "measures": ("linear_cka",), "progress": False}
    options |= {"kind": "text", "out": tmp_path / "run"}
    run, again = (attnaudit.audit(str(folder), tmp_path / "text.txt", **options) for _ in range(2))
    assert again.evidence.equals(run.evidence)
    (note,) = run.settings.loading[str(folder)]
    assert "pooler.dense.weight" in note
    assert json.loads((tmp_path / "run" / "run.json").read_text())["loading"] == {str(folder): [note]}


def test_tied_weights_that_a_file_holds_once_are_not_missing(tmp_path):
    config = transformers.AutoConfig.for_model(
        "t5", d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, vocab_size=67
    )
    transformers.AutoModelForSeq2SeqLM.from_config(config).save_pretrained(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    from tests.sources.hf_folders import write_tokenizer

    write_tokenizer(tmp_path)
    assert load(tmp_path).notes == ()


@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b"\xff" * 8 + b"{}", (1 << 40).to_bytes(8, "little") + b"{}"])
def test_a_damaged_file_is_named(tmp_path, content):
    folder = tiny_bert(tmp_path / "bert")
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(WeightsError, match=r"model\.safetensors"):
        load(folder)


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"num_attention_heads": 0}, "num_attention_heads .* 0"),
        ({"num_attention_heads": -4}, "num_attention_heads .* -4"),
        ({"num_attention_heads": 5}, "5"),
        ({"num_attention_heads": None}, "num_attention_heads"),
        ({"num_hidden_layers": 0}, "num_hidden_layers .* 0"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers .* 1000000000"),
        ({"num_hidden_layers": "six"}, "num_hidden_layers"),
        ({"hidden_act": "zzz"}, "zzz"),
        ({"model_type": ["bert"]}, "config.json"),
        ({"intermediate_size": -1}, "-1"),
        ({"pad_token_id": 10**6}, "within num_embeddings"),
    ],
)
@pytest.mark.parametrize("random_weights", [False, True])
def test_a_config_that_no_network_can_have_is_refused_in_one_sentence(tmp_path, config, named, random_weights):
    folder = tiny_bert(tmp_path / "bert", **config)
    with pytest.raises((ModelError, WeightsError), match=named) as caught:
        load_model(parse_model(str(folder), random_weights=random_weights))
    assert "\n" not in str(caught.value)


def test_a_network_too_large_for_this_machine_is_not_built(tmp_path):
    folder = tiny_bert(tmp_path / "bert", vocab_size=10**13)
    with pytest.raises(ModelError, match="too large for this machine"):
        load_model(parse_model(str(folder), random_weights=True))


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "[" * 100_000])
def test_a_damaged_config_is_named(tmp_path, content):
    folder = tiny_bert(tmp_path / "bert")
    (folder / "config.json").write_text(content)
    with pytest.raises(ModelError, match=r"config\.json"):
        load(folder)


def test_an_adapter_is_not_audited_as_its_model(tmp_path):
    folder = tiny_bert(tmp_path / "bert")
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(ModelError, match="adapter"):
        load(folder)
