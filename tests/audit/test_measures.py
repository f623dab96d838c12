"""Audits with some of the measures."""

import pytest
import torch
from torch import nn

import attnaudit
from attnaudit.errors import UsageError
from attnaudit.measures import Measure

COLUMNS = ["column_cosine_matched", "procrustes"]
EIGENVECTORS = ["eigenvector_residual", "centering_defect", "subspace_overlap"]


def audited(tokens=40, **more):
    torch.manual_seed(0)
    model = nn.TransformerEncoderLayer(32, 2, batch_first=True)
    return attnaudit.audit(model, torch.randn(4, tokens, 32), claims=["kpca-values"], progress=False, **more)


def test_one_measure_is_enough_for_a_verdict():
    run = audited(measures=["column_cosine_matched"])
    assert set(run.evidence["measure"].to_pylist()) == {"column_cosine_matched", "identifiable"}
    (verdict,) = run.verdicts
    assert "column_cosine_matched" in verdict.reason


@pytest.mark.parametrize("measures", [COLUMNS, COLUMNS + EIGENVECTORS, [*COLUMNS, "kernel_rank"]])
@pytest.mark.parametrize(("tokens", "unidentifiable"), [(40, 0), (31, 8)])
def test_heads_with_2d_tokens_can_decide_whatever_measures_are_asked_for(measures, tokens, unidentifiable):
    (verdict,) = audited(tokens, measures=measures).verdicts
    found = {(score.unidentifiable, score.heads) for score in verdict.scores if score.measure in measures}
    assert found == {(unidentifiable, 8 - unidentifiable)}


def test_a_measure_of_ones_own_that_breaks_its_promise_is_named():
    wrong = Measure("both", "two at once", lambda at: {"one": at.heads.scale, "other": at.heads.scale})
    with pytest.raises(UsageError, match=r"measure 'both' .* dict"):
        audited(measures=[wrong])


def test_names_of_ones_own_are_part_of_the_identity_of_a_run(tmp_path):
    mine = Measure("mine", "the scale", lambda at: at.heads.scale.double())
    first = audited(measures=[mine], out=tmp_path / "first")
    again = audited(measures=[Measure("mine", "the scale", mine.function)], out=tmp_path / "again")
    other = audited(measures=[Measure("other", "the scale", mine.function)], out=tmp_path / "other")
    names = [{path.name for path in (run.path / "evidence").iterdir()} for run in (first, again, other)]
    assert names[0] == names[1] != names[2]
