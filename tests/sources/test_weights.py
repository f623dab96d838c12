import argparse
import pickle
import random
import warnings
import zipfile
from collections import Counter
from itertools import islice

import pytest
import torch
from benchmarks.fuzz_weights import safetensors_files, torch_files
from safetensors.torch import save_file
from torch import nn

from attnaudit.errors import WeightsError
from attnaudit.sources.weights import fingerprint, fit_weights, read_weights


def small_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))


@pytest.mark.parametrize("wrapper", [None, "model", "state_dict"])
def test_weights_survive_the_way_through_a_file(tmp_path, wrapper):
    model = small_model()
    state = model.state_dict()
    path = tmp_path / "weights.pth"
    torch.save(state if wrapper is None else {wrapper: state, "epoch": 3}, path)
    other = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    fit_weights(other, read_weights(path), path, "small")
    assert fingerprint(other) == fingerprint(model)


def test_safetensors_are_read(tmp_path):
    path = tmp_path / "weights.safetensors"
    save_file(small_model().state_dict(), path)
    assert set(read_weights(path)) == {"0.weight", "0.bias", "1.weight", "1.bias"}


class Payload:
    def __reduce__(self):
        return (print, ("this must never run",))


def test_other_objects_beside_the_tensors_are_read_only_if_their_class_is_named(tmp_path):
    file = tmp_path / "weights.pt"
    torch.save({"args": argparse.Namespace(layers=2), "model": {"a": torch.ones(2)}}, file)
    with pytest.raises(WeightsError, match="refused"):
        read_weights(file)
    assert torch.equal(read_weights(file, plain=(argparse.Namespace,))["a"], torch.ones(2))
    with pytest.raises(WeightsError, match="refused"):
        read_weights(file)


@pytest.mark.parametrize(
    "save", [torch.save, lambda x, path: path.write_bytes(pickle.dumps(x))], ids=["torch", "pickle"]
)
def test_a_pickle_with_code_is_refused_and_not_run(tmp_path, save, capsys):
    path = tmp_path / "evil.pth"
    save({"weight": Payload()}, path)
    with pytest.raises(WeightsError, match="pickled code"):
        read_weights(path)
    assert "never" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.safetensors", b"", "cannot be read"),
        ("noise.safetensors", b"\x00" * 100, "cannot be read"),
        ("noise.pth", b"not weights at all", "cannot be read|refused"),
        ("empty.pth", b"", "cannot be read"),
    ],
)
def test_broken_files_are_named(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(WeightsError, match=message) as caught:
        read_weights(path)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_without_a_state_dictionary_says_so(tmp_path):
    torch.save({"epoch": 3}, tmp_path / "w.pth")
    with pytest.raises(WeightsError, match="not a state dictionary"):
        read_weights(tmp_path / "w.pth")


def test_keys_that_do_not_fit_are_listed_and_nothing_is_loaded(tmp_path):
    model = small_model()
    before = fingerprint(model)
    weights = {
        "0.weight": torch.zeros(3, 3),
        "0.bias": torch.zeros(4),
        "1.weight": torch.zeros(2, 4),
        "head": torch.zeros(1),
    }
    with pytest.raises(WeightsError) as caught:
        fit_weights(model, weights, tmp_path / "w.safetensors", "small")
    message = str(caught.value)
    assert "1 missing (1.bias)" in message
    assert "1 unknown (head)" in message
    assert "0.weight (3, 3) instead of (4, 3)" in message
    assert fingerprint(model) == before


def quantised():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)


UNUSABLE = {
    "an integer for a name": (lambda: {0: torch.ones(2)}, "must be text, got 0"),
    "a sparse tensor": (lambda: {"weight": torch.eye(3).to_sparse()}, "weight is sparse"),
    "a meta tensor": (lambda: {"weight": torch.ones(2, device="meta")}, "weight is on the meta device"),
    "a complex tensor": (lambda: {"weight": torch.ones(2) + 1j}, "weight is complex"),
    "a quantised tensor": (lambda: {"weight": quantised()}, "weight is quantised"),
}


@pytest.mark.parametrize("content", UNUSABLE)
@pytest.mark.parametrize("wrapper", [None, "model"])
def test_tensors_that_cannot_be_weights_are_refused_by_name(tmp_path, content, wrapper):
    make, named = UNUSABLE[content]
    path = tmp_path / "w.pth"
    torch.save(make() if wrapper is None else {wrapper: make()}, path)
    with pytest.raises(WeightsError, match=named):
        read_weights(path)


def test_whole_numbers_are_not_loaded_as_real_ones(tmp_path):
    weights = {name: tensor.to(torch.int8) for name, tensor in small_model().state_dict().items()}
    with pytest.raises(WeightsError, match=r"4 of another type \(0\.weight torch\.int8 instead of torch\.float32"):
        fit_weights(small_model(), weights, tmp_path / "w.pth", "small")


def test_a_compressed_archive_is_refused_before_it_is_unpacked(tmp_path):
    torch.save({"weight": torch.zeros(1 << 20)}, tmp_path / "plain.pth")
    bomb = tmp_path / "bomb.pth"
    with zipfile.ZipFile(tmp_path / "plain.pth") as plain, zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in plain.namelist():
            packed.writestr(name, plain.read(name))
    assert bomb.stat().st_size < 1 << 16
    with pytest.raises(WeightsError, match="larger than the file"):
        read_weights(bomb)
    assert set(read_weights(tmp_path / "plain.pth")) == {"weight"}


class Bytes:
    def __reduce__(self):
        return (bytearray, (1 << 40,))


@pytest.mark.parametrize("zipped", [True, False])
def test_a_pickle_that_asks_for_memory_is_refused_before_it_gets_any(tmp_path, zipped):
    torch.save({"weight": Bytes()}, tmp_path / "w.pth", _use_new_zipfile_serialization=zipped)
    with pytest.raises(WeightsError, match="bytearray"):
        read_weights(tmp_path / "w.pth")


def test_a_flipped_bit_in_a_torch_file_is_noticed(tmp_path):
    path = tmp_path / "w.pth"
    torch.save({"weight": torch.zeros(1000)}, path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(WeightsError, match=r"data/0 .*checksum"):
        read_weights(path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("suffix", ["safetensors", "pth"])
def test_damaged_and_hostile_files_are_loaded_whole_or_refused_in_one_sentence(tmp_path, suffix):
    """A small part of benchmarks/fuzz_weights.py, of which docs/results/integrity.md has the whole."""
    draw, marker, path = random.Random(0), tmp_path / "code-ran", tmp_path / f"w.{suffix}"
    tensors = small_model().state_dict()
    files = safetensors_files(tensors, draw) if suffix == "safetensors" else torch_files(tensors, draw, marker)
    refused, errors = Counter(), []
    for fault, content in islice(files, 45):
        path.write_bytes(content)
        model = small_model()
        try:
            fit_weights(model, read_weights(path), path, "small")
        except WeightsError as error:
            refused[fault] += 1
            errors.append((str(error), fingerprint(model)))
    assert len(refused) >= 7
    assert not [text for text, _ in errors if "\n" in text]
    assert {own for _, own in errors} == {fingerprint(small_model())}  # nothing is loaded by halves
    assert not marker.exists()


def test_fingerprint_sees_a_single_changed_number():
    model = small_model()
    before = fingerprint(model)
    model[0].weight.data[0, 0] += 1e-6
    assert fingerprint(model) != before
