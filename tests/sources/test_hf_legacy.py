"""Folders of older versions of transformers: torch files, configs without a type, configs inside those of toolkits."""

import io
import json
import os
import pickle
import zipfile

import pytest
import torch

from attnaudit.errors import ModelError, WeightsError
from attnaudit.sources import load_model, parse_model
from tests.sources.hf_folders import CONFIG, WORDS, tiny_bert, tiny_weights, write_tokenizer

transformers = pytest.importorskip("transformers")
FILE = "pytorch_model.bin"


@pytest.fixture(scope="module")
def weights():
    return tiny_weights()


@pytest.fixture
def plain(tmp_path, weights):
    """The fingerprint of the same model in safetensors."""
    return load(tiny_bert(tmp_path / "plain", weights)).fingerprint


def load(folder):
    return load_model(parse_model(str(folder)))


def prefixed(weights, prefix):
    return {f"{prefix}.{name}": tensor for name, tensor in weights.items()}


@pytest.mark.parametrize("zipped", [True, False], ids=["archive", "row of pickles"])
def test_a_torch_file_is_the_same_model_as_safetensors(tmp_path, weights, plain, zipped):
    folder = tiny_bert(tmp_path / "old", weights, legacy=True)
    torch.save(weights, folder / FILE, _use_new_zipfile_serialization=zipped)
    assert load(folder).fingerprint == plain


def test_safetensors_are_read_if_both_are_there(tmp_path, weights, plain):
    folder = tiny_bert(tmp_path / "both", weights)
    torch.save({}, folder / FILE)
    assert load(folder).fingerprint == plain


def sharded(folder, weights, index=None):
    names = sorted(weights)
    parts = [names[: len(names) // 2], names[len(names) // 2 :]]
    for place, part in enumerate(parts):
        torch.save({name: weights[name] for name in part}, folder / f"pytorch_model-{place}.bin")
    found = {name: f"pytorch_model-{place}.bin" for place, part in enumerate(parts) for name in part}
    (folder / f"{FILE}.index.json").write_text(json.dumps({"weight_map": found} if index is None else index))


def test_several_torch_files_are_one_model_and_a_missing_or_repeated_part_is_named(tmp_path, weights, plain):
    folder = tiny_bert(tmp_path / "old", weights, legacy=True)
    (folder / FILE).unlink()
    sharded(folder, weights)
    assert load(folder).fingerprint == plain
    torch.save(weights, folder / "pytorch_model-1.bin")
    with pytest.raises(WeightsError, match=r"embeddings\.LayerNorm\.bias in more than one file"):
        load(folder)
    (folder / "pytorch_model-1.bin").unlink()
    with pytest.raises(WeightsError, match=r"pytorch_model-1\.bin, which pytorch_model\.bin\.index\.json names"):
        load(folder)
    sharded(folder, weights, index=[1])
    with pytest.raises(WeightsError, match=r"pytorch_model\.bin\.index\.json cannot be read"):
        load(folder)


def test_tied_weights_that_a_torch_file_holds_once_or_twice_are_the_same_model(tmp_path):
    config = transformers.GPT2Config(n_embd=32, n_layer=1, n_head=4, n_positions=64, vocab_size=len(WORDS))
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(config)
    found = []
    for name in ("once", "twice"):
        config.save_pretrained(tmp_path / name)
        write_tokenizer(tmp_path / name)
        content = {key: value for key, value in model.state_dict().items() if name == "twice" or "lm_head" not in key}
        content |= {"transformer.h.0.attn.bias": torch.ones(64, 64, dtype=torch.bool)}  # a mask of older versions
        torch.save(content, tmp_path / name / FILE)
        found.append(load(tmp_path / name))
    assert found[0].fingerprint == found[1].fingerprint
    assert "lm_head.weight" in found[1].notes[0]


class Code:
    def __reduce__(self):
        return os.mkdir, ("attacked",)


def test_a_torch_file_with_code_is_refused_and_the_code_does_not_run(tmp_path, weights, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tiny_bert(tmp_path / "old", weights, legacy=True)
    torch.save({**weights, "extra": Code()}, folder / FILE)
    with pytest.raises(WeightsError, match=r"pytorch_model\.bin is refused.*safetensors") as caught:
        load(folder)
    assert "\n" not in str(caught.value)
    (folder / FILE).write_bytes(pickle.dumps(Code()))
    with pytest.raises(WeightsError, match=r"pytorch_model\.bin"):
        load(folder)
    assert not (tmp_path / "attacked").exists()


def test_torch_files_are_not_read_with_a_torch_that_might_run_their_code(tmp_path, weights, monkeypatch):
    folder = tiny_bert(tmp_path / "old", weights, legacy=True)
    monkeypatch.setattr(torch, "__version__", "2.5.1")
    with pytest.raises(WeightsError, match=r"torch ≥ 2\.6"):
        load(folder)


def test_a_damaged_torch_file_is_named(tmp_path, weights):
    folder = tiny_bert(tmp_path / "old", weights, legacy=True)
    content = bytearray((folder / FILE).read_bytes())
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        place = max(archive.infolist(), key=lambda part: part.file_size)
    content[place.header_offset + 300] ^= 1
    (folder / FILE).write_bytes(content)
    with pytest.raises(WeightsError, match=r"pytorch_model\.bin is damaged"):
        load(folder)


def test_a_folder_without_weights_says_which_files_it_needs(tmp_path, weights):
    folder = tiny_bert(tmp_path / "old", weights)
    (folder / "model.safetensors").unlink()
    with pytest.raises(WeightsError, match=r"no weights: add model\.safetensors"):
        load(folder)


def without_type(folder, **config):
    content = {name: value for name, value in CONFIG.items() if name != "model_type"}
    (folder / "config.json").write_text(json.dumps(content | {"vocab_size": len(WORDS)} | config))
    (folder / "tokenizer_config.json").unlink()  # as old: the words alone
    return folder


@pytest.mark.parametrize("legacy", [False, True], ids=["safetensors", "torch"])
def test_a_config_without_a_type_is_taken_for_what_its_tensors_or_its_folder_are_named_after(
    tmp_path, weights, plain, legacy
):
    by_tensors = tiny_bert(tmp_path / "mine", prefixed(weights, "bert"), legacy=legacy)
    by_folder = tiny_bert(tmp_path / "bert_ft", weights, legacy=legacy)
    for folder, why in ((by_tensors, "names of its tensors"), (by_folder, "name of its folder")):
        model = load(without_type(folder))
        assert model.fingerprint == plain
        assert model.notes[0].endswith(why)
        assert "bert" in model.notes[0]


def test_a_config_that_nothing_says_the_type_of_is_refused(tmp_path, weights):
    folder = without_type(tiny_bert(tmp_path / "albertus", weights))
    with pytest.raises(ModelError, match=r'does not say what network.*add its "model_type"'):
        load(folder)


def test_a_config_inside_the_config_of_a_toolkit_is_found_with_its_tensors(tmp_path, weights, plain):
    own = prefixed(weights, "backbone") | {"heads.pos.weight": torch.ones(2, 2)}
    folder = tiny_bert(tmp_path / "toolkit", own, legacy=True)
    inner = json.loads((folder / "config.json").read_text())
    outer = {"model": {"backbone": {"target": "toolkit.load", "config": inner}, "heads": {"pos": {"size": 2}}}}
    (folder / "config.json").write_text(json.dumps(outer))
    model = load(folder)
    assert model.fingerprint == plain
    assert "model.backbone.config" in model.notes[0]
    assert "heads.pos.weight" in model.notes[1]
