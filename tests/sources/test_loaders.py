"""A loader gives the same evidence as its batches, whatever form they have."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import attnaudit
from attnaudit.errors import InputError, UsageError
from tests.sources.hf_folders import WORDS, tiny_bert

OPTIONS = {"references": (), "claims": (), "measures": ("linear_cka", "phi_norm2"), "progress": False}


class Net(nn.Module):
    """One layer of attention over tokens of 8 numbers."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, tokens):
        return self.attention(tokens, tokens, tokens)[0]


@pytest.fixture
def tokens():
    torch.manual_seed(1)
    return torch.randn(10, 12, 8)


def rows(run):
    """Every value by what it is of."""
    names = ("input", "layer", "head", "measure", "tokens")
    return {tuple(row[name] for name in names): row["value"] for row in run.evidence.to_pylist()}


FORMS = {
    "tensors": lambda tokens: DataLoader(tokens, batch_size=3),
    "pairs with labels": lambda tokens: DataLoader(TensorDataset(tokens, torch.arange(10)), batch_size=3),
    "mappings": lambda tokens: [{"tokens": own} for own in tokens.split(3)],
    "mappings with labels": lambda tokens: [{"tokens": own, "labels": own.sum((1, 2))} for own in tokens.split(3)],
    "mappings in pairs": lambda tokens: [({"tokens": own}, 0) for own in tokens.split(3)],
    "a generator": lambda tokens: (own for own in tokens.split(4)),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_loader_gives_the_evidence_of_its_batches(tokens, tmp_path, form):
    whole = attnaudit.audit(Net(), tokens, out=tmp_path / "batch", **OPTIONS)
    loaded = attnaudit.audit(Net(), FORMS[form](tokens), limit=None, out=tmp_path / "loader", **OPTIONS)
    assert rows(loaded) == pytest.approx(rows(whole), rel=1e-4)


def test_only_the_first_inputs_of_a_loader_are_used_and_no_further_batch_is_asked_for(tokens, tmp_path):
    def batches():
        yield from tokens.split(3)[:2]
        raise AssertionError("not needed")

    run = attnaudit.audit(Net(), batches(), limit=5, out=tmp_path, **OPTIONS)
    assert set(run.evidence.column("input").to_pylist()) == {f"input-{place}" for place in range(5)}


def test_groups_are_those_of_the_inputs_of_a_loader(tokens, tmp_path):
    loader = DataLoader(tokens, batch_size=3)
    groups = [f"film-{place // 5}" for place in range(10)]
    run = attnaudit.audit(Net(), loader, limit=None, groups=groups, out=tmp_path / "run", **OPTIONS)
    assert run.groups == {f"input-{place}": f"film-{place // 5}" for place in range(10)}
    with pytest.raises(InputError, match="Got 3 groups for 10 inputs"):
        attnaudit.audit(Net(), loader, limit=None, groups=groups[:3], out=tmp_path / "few", **OPTIONS)
    with pytest.raises(UsageError, match="no folders"):
        attnaudit.audit(Net(), loader, groups="folder", **OPTIONS)


@pytest.mark.parametrize(
    ("loader", "said"),
    [
        ([], "yields no batch"),
        (["a text"], "batch 0 is a str"),
        ([torch.zeros(2, 12, 8), ("a", "b")], "batch 1 is a tuple of str"),
        ([[]], "batch 0 is a list"),
        ([{"tokens": [1, 2]}], "tokens must be a torch tensor, got list"),
        ([{"words": torch.zeros(2, 12, 8)}], "has no tensors"),
    ],
)
def test_a_loader_of_something_else_is_refused_in_one_sentence(loader, said):
    with pytest.raises(InputError, match=said):
        attnaudit.audit(Net(), loader, **OPTIONS)


def test_something_that_is_no_loader_is_refused():
    with pytest.raises(UsageError, match="inputs must be a batch"):
        attnaudit.audit(Net(), 3, **OPTIONS)


def test_batches_of_a_tokenizer_may_have_different_lengths_and_padding(tmp_path):
    transformers = pytest.importorskip("transformers")
    folder = tiny_bert(tmp_path / "bert")
    model = transformers.AutoModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    texts = [" ".join(WORDS[-10 : -10 + count] * 3) for count in (3, 8, 5, 6)]

    def collated(own):
        return tokenizer(list(own), padding=True, return_tensors="pt")

    loader = DataLoader(texts, batch_size=2, collate_fn=collated)
    together = attnaudit.audit(model, loader, out=tmp_path / "loader", **OPTIONS)
    alone = attnaudit.audit(model, (collated([text]) for text in texts), out=tmp_path / "alone", **OPTIONS)
    assert rows(together) == pytest.approx(rows(alone), rel=1e-3)
    assert len({key[-1] for key in rows(together)}) == len(texts)
