"""A padded batch gives the evidence that its inputs give alone."""

import pytest
import torch

import attnaudit
from attnaudit.errors import InputError

transformers = pytest.importorskip("transformers")

MEASURES = ["linear_cka", "value_subspace_overlap"]


def build():
    torch.manual_seed(0)
    config = transformers.BertConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, vocab_size=50
    )
    return transformers.BertModel(config).eval()


def observed(run, name):
    return {
        (row["layer"], row["head"], row["theory"], row["measure"]): row["value"]
        for row in run.evidence.to_pylist()
        if row["input"] == name and row["reference"] == "observed"
    }


def test_padding_changes_nothing(tmp_path):
    model, ids = build(), torch.randint(5, 50, (2, 20), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[1, 13:] = 0
    options = {"measures": MEASURES, "references": ["gaussian"], "repeats": 2, "progress": False}
    together = attnaudit.audit(model, {"input_ids": ids, "attention_mask": mask}, out=tmp_path / "both", **options)
    alone = attnaudit.audit(model, {"input_ids": ids[1:, :13]}, out=tmp_path / "alone", **options)
    padded, plain = observed(together, "input-1"), observed(alone, "input-0")
    assert padded.keys() == plain.keys()
    assert len(padded) >= 2 * 2 * len(MEASURES)
    for key, value in plain.items():
        assert padded[key] == pytest.approx(value, abs=1e-5), key


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ({}, "no tensors"),
        ({"input_ids": [[1, 2]]}, "must be a torch tensor, got list"),
        ({"input_ids": torch.ones(2, 3), "attention_mask": torch.ones(3, 3)}, "input_ids 2, attention_mask 3"),
    ],
)
def test_batches_that_do_not_fit_together_are_refused(batch, message, tmp_path):
    with pytest.raises(InputError, match=message):
        attnaudit.audit(build(), batch, out=tmp_path / "run", progress=False)
