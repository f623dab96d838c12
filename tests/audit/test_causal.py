"""Verdicts on causal models: what a theorem excludes, and what can still be asked."""

import pytest
import torch
from torch import nn

import attnaudit
from attnaudit.records.verdict import Finding, VerdictWord

transformers = pytest.importorskip("transformers")

TOKENS, DIM = 32, 4


class SingularAttention(nn.Module):
    """Attention whose values are exactly the right singular vectors of its own attention matrix.

    Heads that share their keys have one matrix, with the queries of all of them.
    """

    def __init__(self, heads, key_heads, *, causal):
        super().__init__()
        self.heads, self.key_heads, self.causal = heads, key_heads, causal
        self.query = nn.Linear(16, heads * DIM)
        self.key = nn.Linear(16, key_heads * DIM)

    def forward(self, x):
        batch, tokens, _ = x.shape
        group = self.heads // self.key_heads
        query = 2 * self.query(x).view(batch, tokens, self.heads, DIM).transpose(1, 2)
        key = 2 * self.key(x).view(batch, tokens, self.key_heads, DIM).transpose(1, 2)
        key = key.repeat_interleave(group, dim=1)
        scores = query @ key.mT * DIM**-0.5
        if self.causal:
            scores = scores.masked_fill(torch.ones(tokens, tokens, dtype=torch.bool).triu(1), -torch.inf)
        rows = torch.softmax(scores, dim=-1).view(batch, self.key_heads, group * tokens, tokens)
        value = torch.linalg.svd(rows.double(), full_matrices=False).Vh[..., :DIM, :].mT.to(x.dtype)
        value = value.repeat_interleave(group, dim=1)
        return nn.functional.scaled_dot_product_attention(query, key, value, is_causal=self.causal)


def audited(model, tmp_path, inputs=None, **options):
    torch.manual_seed(1)
    inputs = torch.randn(8, TOKENS, 16) if inputs is None else inputs
    return attnaudit.audit(model, inputs, out=tmp_path / "run", progress=False, **options)


def verdict(run, claim):
    return next(own for own in run.verdicts if own.claim == claim)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("heads", "key_heads"), [(2, 2), (8, 2), (8, 1)])
def test_values_that_are_singular_vectors_of_the_models_own_attention_support_ksvd(heads, key_heads, causal, tmp_path):
    torch.manual_seed(0)
    found = verdict(
        audited(SingularAttention(heads, key_heads, causal=causal), tmp_path, claims=["ksvd-values"]), "ksvd-values"
    )
    assert (found.word, found.finding) == (VerdictWord.SUPPORTED, Finding.IN_ALL_HEADS)
    assert found.heads == key_heads
    for score in found.scores:
        assert score.score.mean == pytest.approx(1, abs=1e-3)


def llama(key_heads=2):
    config = transformers.LlamaConfig(
        vocab_size=30,
        hidden_size=16,
        intermediate_size=8,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=key_heads,
    )
    torch.manual_seed(0)
    return transformers.LlamaModel(config).eval()


def tokens(count=8):
    return {"input_ids": torch.randint(0, 30, (count, TOKENS), generator=torch.Generator().manual_seed(0))}


KPCA = ["kpca-values", "kpca-eigenvectors", "kpca-projection"]


def test_kernel_pca_is_impossible_for_causal_heads_whatever_the_number_of_inputs(tmp_path):
    run = audited(llama(), tmp_path, tokens(1), claims=KPCA)
    assert [(own.word, own.finding, own.heads) for own in run.verdicts] == [
        (VerdictWord.REFUTED, Finding.IMPOSSIBLE, 4)
    ] * 3
    assert "all 4 heads are excluded by a theorem" in run.verdicts[0].reason
    assert "Centring defect of the values over prefixes" in run.verdicts[0].reason


def test_no_gauge_makes_kernel_pca_possible(tmp_path):
    found = verdict(audited(llama(), tmp_path, tokens(2), claims=["kpca-values-any-gauge"]), "kpca-values-any-gauge")
    assert (found.word, found.finding, found.heads) == (VerdictWord.REFUTED, Finding.IMPOSSIBLE, 4)


def test_a_key_head_is_one_row_and_another_key_head_is_the_other_head(tmp_path):
    run = audited(
        llama(), tmp_path, tokens(2), measures=["value_subspace_overlap"], theories=["pca"], references=["other_head"]
    )
    rows = [row for row in run.evidence.to_pylist() if row["measure"] == "value_subspace_overlap"]
    assert {row["head"] for row in rows} == {0, 1}
    value = {(r["input"], r["layer"], r["head"], r["reference"]): r["value"] for r in rows if r["theory"] == "pca"}
    for (name, layer, head, reference), number in value.items():
        if reference == "other_head":
            assert number != value[name, layer, head, "observed"]


def test_nothing_is_scored_for_a_theory_that_a_theorem_excludes(tmp_path):
    run = audited(llama(), tmp_path, tokens(2))
    found = {(row["theory"], row["reference"]) for row in run.evidence.to_pylist()}
    assert {reference for theory, reference in found if theory == "kpca"} <= {
        *("observed", "random_projection", "rotated", "planted")
    }
    assert ("ksvd", "other_head") in found
    marks = [row for row in run.evidence.to_pylist() if row["measure"] == "possible"]
    assert {(row["theory"], row["value"]) for row in marks} == {("kpca", None)}
    assert all("leaves only V = 0" in row["reason"] for row in marks)


class BothWays(nn.Module):
    """A layer that sees everything, and a causal one."""

    def __init__(self):
        super().__init__()
        self.project = nn.ModuleList(nn.Linear(16, 3 * 8) for _ in range(2))

    def forward(self, x):
        for layer, project in enumerate(self.project):
            query, key, value = project(x).view(len(x), TOKENS, 3, 2, DIM).permute(2, 0, 3, 1, 4)
            attended = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=bool(layer))
            x = x + attended.transpose(1, 2).flatten(2).repeat(1, 1, 2)
        return x


def test_only_the_causal_heads_of_a_model_are_excluded(tmp_path):
    torch.manual_seed(0)
    found = verdict(audited(BothWays(), tmp_path, claims=["kpca-values"]), "kpca-values")
    assert found.word is VerdictWord.REFUTED
    assert found.finding is not Finding.IMPOSSIBLE
    assert found.heads == 4
    assert "Another 2 heads are excluded by a theorem" in found.reason
    assert {head.layer for score in found.scores for head in score.heads} == {0}
