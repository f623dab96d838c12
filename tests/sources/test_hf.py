import pytest
import torch

from attnaudit.errors import ModelError, UsageError, WeightsError
from attnaudit.sources import load_model, parse_model

transformers = pytest.importorskip("transformers")


@pytest.fixture(autouse=True)
def _offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def test_the_embedded_model_is_all_minilm():
    model = load_model(parse_model("minilm"))
    assert model.label == "minilm"
    assert model.module.config.num_hidden_layers == 6
    assert model.module.config.hidden_size // model.module.config.num_attention_heads == 32
    assert model.tokenise(["a b"], 16)["input_ids"].shape == (1, 4)


def test_its_untrained_twin_has_other_weights_and_the_same_shape():
    model = load_model(parse_model("minilm"))
    twin = model.untrained(1)
    for (name, ours), theirs in zip(model.module.state_dict().items(), twin.state_dict().values(), strict=True):
        assert ours.shape == theirs.shape, name
    assert not torch.equal(model.module.state_dict()["embeddings.word_embeddings.weight"],
                           twin.state_dict()["embeddings.word_embeddings.weight"])  # fmt: skip


def test_a_local_folder_in_hub_layout_is_a_model(tmp_path):
    source = load_model(parse_model("minilm"))
    folder = tmp_path / "mine"
    source.module.save_pretrained(folder)
    embedded = parse_model("minilm")
    from attnaudit.sources.hf_models import _folder

    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"):
        (folder / name).write_bytes((_folder(embedded.name) / name).read_bytes())
    for name in (str(folder), f"hf:{folder}"):
        assert load_model(parse_model(name)).fingerprint == source.fingerprint


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(ModelError, match=r"config\.json"):
        parse_model(str(tmp_path))


def test_a_hub_model_that_is_not_here_says_what_to_do():
    with pytest.raises(WeightsError, match="--download"):
        parse_model("hf:somebody/some-model-that-is-not-cached")
    with pytest.raises(ModelError, match="neither a local folder nor a valid hub id"):
        parse_model("hf:not a/valid id!")


def test_images_and_text_do_not_mix():
    from attnaudit.protocol import Protocol
    from attnaudit.sources.selection import InputSelection, select_inputs

    specs = [parse_model("minilm"), parse_model("test_vit", random_weights=True)]
    with pytest.raises(UsageError, match="read different kinds of inputs"):
        select_inputs(specs, InputSelection(None, 1, 0), Protocol.EXACT, "cpu")
