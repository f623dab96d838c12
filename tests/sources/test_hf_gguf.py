"""GGUF files are audited like folders, say how they were quantised, and are converted once."""

import json

import numpy as np
import pytest
import torch

import attnaudit
from attnaudit.capture import capture
from attnaudit.errors import ModelError, WeightsError
from attnaudit.sources import load_model, parse_model
from attnaudit.sources.model_cache import cache_folder
from tests.sources.hf_folders import TEXT, WORDS

transformers = pytest.importorskip("transformers")
gguf = pytest.importorskip("gguf", reason="the package gguf, of the extra of that name, is not installed")

HEADS, KEY_HEADS, WIDTH, INNER, LAYERS = 4, 2, 32, 64, 2
#: A word is made of pieces that are words too, from its beginning on.
BEGUN = dict.fromkeys(f"▁{word[:length]}" for word in WORDS[-10:] for length in range(len(word), 0, -1))
PIECES = ["<unk>", "<s>", "</s>", *sorted(BEGUN, key=len, reverse=True), "▁", *"abcdefghijklmnopqrstuvwxyz"]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def tiny_llama():
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(PIECES), hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=KEY_HEADS, max_position_embeddings=64, rms_norm_eps=1e-5,
    )  # fmt: skip
    return transformers.LlamaModel(config).eval()


def for_pairs(weight, heads):
    """The rows of a head as llama.cpp has them: those that are rotated together follow each other."""
    halves = weight.reshape(heads, 2, weight.shape[0] // heads // 2, weight.shape[1])
    return halves.swapaxes(1, 2).reshape(weight.shape)


NAMES = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q"}
NAMES |= {"self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output"}
NAMES |= {"mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def tensors(model):
    yield "token_embd.weight", model.embed_tokens.weight.detach().numpy()
    yield "output_norm.weight", model.norm.weight.detach().numpy()
    for place, layer in enumerate(model.layers):
        for ours, theirs in NAMES.items():
            weight = layer.get_submodule(ours).weight.detach().numpy()
            heads = {"attn_q": HEADS, "attn_k": KEY_HEADS}.get(theirs)
            yield f"blk.{place}.{theirs}.weight", weight if heads is None else for_pairs(weight, heads)


def write(path, model, quantised=True, more=(), without=()):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(len(PIECES))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(PIECES)
    writer.add_token_scores([-float(place) for place in range(len(PIECES))])
    writer.add_token_types([2, 3, 3, *[1] * (len(PIECES) - 3)])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(True)
    kind = gguf.GGMLQuantizationType.Q8_0
    for name, weight in (*tensors(model), *more):
        if name in without:
            continue
        packed = quantised and weight.ndim == 2
        writer.add_tensor(name, gguf.quantize(weight, kind) if packed else weight, raw_dtype=kind if packed else None)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def load(path):
    return load_model(parse_model(str(path)))


def test_weights_that_were_not_quantised_are_the_network_that_was_written(tmp_path):
    model = tiny_llama()
    found = load(write(tmp_path / "plain.gguf", model, quantised=False))
    for name, weight in model.state_dict().items():
        torch.testing.assert_close(found.module.state_dict()[name], weight, rtol=0, atol=0)
    assert found.notes == ("stored as F32 100%",)
    ids = torch.arange(3, 30)[None]
    with torch.no_grad():
        assert torch.equal(found.module(ids).last_hidden_state, model(ids).last_hidden_state)


def test_a_quantised_file_says_so_and_its_run_does(tmp_path):
    path = write(tmp_path / "model.gguf", tiny_llama())
    (tmp_path / "text.txt").write_text(TEXT)
    options = {"claims": (), "references": (), "measures": ("linear_cka",), "progress": False}
    run = attnaudit.audit(str(path), tmp_path / "text.txt", out=tmp_path / "run", **options)
    ((note,),) = json.loads((tmp_path / "run" / "run.json").read_text())["loading"].values()
    assert note.startswith("its weights are quantised (Q8_0 99%, F32 1%)")
    assert list(run.models) == [str(path)]


def test_texts_are_tokenised_as_the_file_says_and_heads_are_captured(tmp_path):
    model = load(write(tmp_path / "model.gguf", tiny_llama()))
    batch = model.tokenise(["the cat runs"], 16)
    assert batch["input_ids"].tolist() == [[1, *(PIECES.index(f"▁{word}") for word in ("the", "cat", "runs"))]]
    assert len(capture(model.module, batch).layer_names) == LAYERS
    assert model.tokenise(["cat " * 500], 256)["input_ids"].shape == (1, 64)


def test_a_folder_with_one_file_is_that_file_and_one_with_several_is_refused(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    path = write(folder / "model.gguf", tiny_llama())
    assert load(folder).fingerprint == load(path).fingerprint
    write(folder / "other.gguf", tiny_llama())
    with pytest.raises(ModelError, match=r"2 GGUF files: give the path of one"):
        load(folder)


def test_a_file_is_converted_once_and_a_changed_conversion_is_noticed(tmp_path, monkeypatch):
    path = write(tmp_path / "model.gguf", tiny_llama())
    before = load(path).fingerprint
    from attnaudit.sources import hf_gguf

    monkeypatch.setattr(hf_gguf, "convert_gguf", None)  # to call it again would fail
    assert load(path).fingerprint == before
    (weights,) = cache_folder().glob("*/model.safetensors")
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(WeightsError, match=r"model\.safetensors is not what was converted: delete"):
        load(path)


def test_a_file_of_which_a_part_would_be_left_out_is_refused(tmp_path):
    bias = [("blk.0.attn_q.bias", np.ones(WIDTH, np.float32))]
    with pytest.raises(WeightsError, match="it would not be the same model"):
        load(write(tmp_path / "bias.gguf", tiny_llama(), more=bias))
    with pytest.raises(WeightsError, match=r"1 missing \(layers\.1\.mlp\.up_proj\.weight\)"):
        load(write(tmp_path / "part.gguf", tiny_llama(), without=["blk.1.ffn_up.weight"]))
    assert not list(cache_folder().glob("*/*"))


@pytest.mark.parametrize("kept", [0, 4, 20, 400, -100])
def test_a_damaged_file_is_named_in_one_sentence(tmp_path, kept):
    path = write(tmp_path / "model.gguf", tiny_llama())
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises((ModelError, WeightsError), match=r"model\.gguf") as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"nothing\.gguf does not exist"):
        parse_model(str(tmp_path / "nothing.gguf"))
