"""A text is cut to the positions that a network has, whatever its tokenizer says."""

import pytest
import torch

import attnaudit
from attnaudit.capture import capture
from attnaudit.sources import load_model, parse_model
from tests.sources.hf_folders import WORDS, write_fast_tokenizer

transformers = pytest.importorskip("transformers")

SIZES = {"vocab_size": len(WORDS), "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1}
SIZES |= {"num_attention_heads": 2, "pad_token_id": 1, "max_position_embeddings": 64}
BART = {"d_model": 32, "vocab_size": len(WORDS), "encoder_layers": 1, "decoder_layers": 1, "pad_token_id": 1}
BART |= {f"{side}_{name}": 2 for side in ("encoder", "decoder") for name in ("attention_heads", "ffn_dim")}
#: Config, its settings, and how many tokens the network can read.
NETWORKS = {
    "bert": ("BertConfig", SIZES, 64),
    "roberta, which counts from after its padding": ("RobertaConfig", SIZES, 62),
    "opt, whose table has two rows more": ("OPTConfig", SIZES | {"ffn_dim": 32, "word_embed_proj_dim": 32}, 64),
    "bart, on both sides": ("BartConfig", BART | {"max_position_embeddings": 64}, 64),
    "led, with different sides": (
        "LEDConfig",
        BART | {"max_encoder_position_embeddings": 128, "max_decoder_position_embeddings": 64, "attention_window": 8},
        64,
    ),
    "gpt2": ("GPT2Config", {"vocab_size": len(WORDS), "n_embd": 32, "n_layer": 1, "n_head": 2, "n_positions": 64}, 64),
    "mistral, with a window": ("MistralConfig", SIZES | {"num_key_value_heads": 1, "sliding_window": 16}, 64),
    "xlnet, without a limit": (
        "XLNetConfig",
        {"vocab_size": len(WORDS), "d_model": 32, "n_layer": 1, "n_head": 2, "d_inner": 32},
        256,
    ),
}


@pytest.fixture(params=NETWORKS)
def network(request, tmp_path):
    config, settings, longest = NETWORKS[request.param]
    torch.manual_seed(0)
    transformers.AutoModel.from_config(getattr(transformers, config)(**settings)).save_pretrained(tmp_path)
    write_fast_tokenizer(tmp_path)
    return load_model(parse_model(str(tmp_path))), longest


def test_a_long_text_is_cut_to_what_the_network_can_read(network):
    model, longest = network
    batch = model.tokenise(["cat " * 500], 256)
    assert batch["input_ids"].shape == (1, longest)
    assert batch["input_ids"].max() < len(WORDS)
    capture(model.module, batch)
    assert model.tokenise(["cat " * 500], 16)["input_ids"].shape == (1, 16)


def test_passages_are_audited_by_a_network_with_few_positions(tmp_path):
    config, settings, _ = NETWORKS["roberta, which counts from after its padding"]
    transformers.AutoModel.from_config(getattr(transformers, config)(**settings)).save_pretrained(tmp_path / "model")
    write_fast_tokenizer(tmp_path / "model")
    (tmp_path / "text.txt").write_text("the cat sleeps under the tree because " * 100)
    run = attnaudit.audit(
        str(tmp_path / "model"), tmp_path / "text.txt", limit=2, references=[], claims=(), out=tmp_path / "run"
    )
    assert set(run.evidence.column("tokens").to_pylist()) == {62}
