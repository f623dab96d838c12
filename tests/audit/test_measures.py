"""Audits with some of the measures."""

import pytest
import torch
from torch import nn

import attnaudit
from attnaudit.errors import UsageError
from attnaudit.measures import Measure
from attnaudit.statistics.decisions import TOLERANCE, decides

COLUMNS = ["column_cosine_matched", "procrustes"]
EIGENVECTORS = ["eigenvector_residual", "centering_defect", "subspace_overlap"]


def audited(tokens=40, inputs=4, **more):
    torch.manual_seed(0)
    model = nn.TransformerEncoderLayer(32, 2, batch_first=True)
    more = {"references": ["random_projection", "planted"]} | more
    return attnaudit.audit(model, torch.randn(inputs, tokens, 32), claims=["kpca-values"], progress=False, **more)


def test_one_measure_is_enough_for_a_verdict():
    run = audited(measures=["column_cosine_matched"], inputs=8, references="all")
    assert set(run.evidence["measure"].to_pylist()) == {"column_cosine_matched", "identifiable"}
    (verdict,) = run.verdicts
    assert verdict.words == "refuted (at chance)"
    assert "column_cosine_matched" in verdict.reason


def test_what_is_fitted_is_only_what_was_asked_for():
    measures = ["value_subspace_overlap", "procrustes"]
    for name in ("best_projection", "planted_with_noise"):
        run = audited(measures=measures, references=["random_projection", "planted", name])
        assert set(run.evidence["reference"].to_pylist()) == {"observed", "random_projection", "planted", name}


def test_noise_and_gauges_are_measured_on_the_runs_own_heads():
    """Few tokens have most of the weight in G⁻¹V, so that a little noise destroys what it says."""
    references = ["random_projection", "planted", "planted_with_noise", "reparametrised", "reparametrised_null"]
    torch.manual_seed(0)
    model = nn.TransformerEncoderLayer(32, 2, batch_first=True)
    with torch.no_grad():
        model.self_attn.in_proj_weight[:64] *= 2  # attention that is far from uniform
    (verdict,) = attnaudit.audit(
        model, torch.randn(8, 40, 32), claims=["kpca-eigenvectors"], references=references, progress=False,
        measures=["column_cosine_matched", "eigenvector_residual"],
    ).verdicts  # fmt: skip
    (columns,), residual = verdict.scores, verdict.shown[0]
    assert residual.tolerance < TOLERANCE < columns.tolerance
    assert not decides(residual)
    assert decides(columns)
    low, high = columns.gauges
    assert low < high


@pytest.mark.parametrize(("inputs", "fitted"), [(8, False), (40, True)])
def test_the_upper_end_of_the_ceiling_needs_many_inputs(inputs, fitted):
    run = audited(
        measures=["value_subspace_overlap"], inputs=inputs,
        references=["random_projection", "planted", "best_projection", "best_projection_fitted"],
    )  # fmt: skip
    (score,) = (own for own in run.verdicts[0].scores if own.measure == "value_subspace_overlap")
    assert score.reach is not None
    assert (score.fitted_reach is not None) == fitted
    if fitted:
        assert score.fitted_reach.mean > score.reach.mean


@pytest.mark.parametrize("measures", [COLUMNS, COLUMNS + EIGENVECTORS, [*COLUMNS, "kernel_rank"]])
@pytest.mark.parametrize(("tokens", "unidentifiable"), [(40, 0), (31, 8)])
def test_heads_with_2d_tokens_can_decide_whatever_measures_are_asked_for(measures, tokens, unidentifiable):
    (verdict,) = audited(tokens, measures=measures).verdicts
    found = {(score.unidentifiable, score.informative) for score in verdict.scores if score.measure in measures}
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
