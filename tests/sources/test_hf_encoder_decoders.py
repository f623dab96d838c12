"""Folders of encoder-decoders: both stacks and the attention between them are audited."""

import json

import pytest
import torch
from typer.testing import CliRunner

from attnaudit.cli import app
from attnaudit.sources import load_model, parse_model
from tests.sources.hf_folders import TEXT, WORDS, write_fast_tokenizer

transformers = pytest.importorskip("transformers")

T5 = {"d_model": 32, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 4, "vocab_size": len(WORDS)}
BART = {"d_model": 32, "vocab_size": len(WORDS), "max_position_embeddings": 64, "pad_token_id": 0}
BART |= {f"{side}_{name}": own for side in ("encoder", "decoder") for name, own in
         (("layers", 2), ("attention_heads", 4), ("ffn_dim", 32))}  # fmt: skip
CONFIGS = {"t5": ("T5Config", T5), "bart": ("BartConfig", BART)}
CONFIGS["marian"] = ("MarianConfig", BART | {"decoder_start_token_id": 0})


def write(folder, kind, legacy):
    name, settings = CONFIGS[kind]
    torch.manual_seed(0)
    model = transformers.AutoModelForSeq2SeqLM.from_config(getattr(transformers, name)(**settings))
    if legacy:
        model.config.save_pretrained(folder)
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
    else:
        model.save_pretrained(folder)
    write_fast_tokenizer(folder)
    return folder


def test_sine_waves_that_newer_files_leave_out_are_not_missing(tmp_path):
    newer, older = (load_model(parse_model(str(write(tmp_path / str(own), "marian", own)))) for own in (False, True))
    assert newer.fingerprint == older.fingerprint
    assert "embed_positions" not in " ".join(newer.notes)


@pytest.mark.parametrize("kind", CONFIGS)
def test_both_stacks_and_cross_attention_are_audited_from_the_command_line(tmp_path, kind):
    folder = write(tmp_path / kind, kind, legacy=kind == "bart")
    (tmp_path / "text.txt").write_text(TEXT)
    arguments = ["audit", str(folder), "--text", str(tmp_path / "text.txt"), "--out", str(tmp_path / "run")]
    found = CliRunner().invoke(app, [*arguments, "--claims", "none", "--references", "none"])
    assert found.exit_code == 0, found.output
    certificates = json.loads((tmp_path / "run" / "run.json").read_text())["certificates"]
    assert len(certificates) == 6, "two layers of each stack, and two between them"
    assert max(certificates.values()) < 1e-4
