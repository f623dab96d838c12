"""Audits of models with Primal-Attention: the same road from capture to evidence as for softmax attention."""

import pyarrow.compute as pc
import pytest
import torch
from torch import nn

import attnaudit
from attnaudit import attention
from attnaudit.measures import MEASURES as ALL
from attnaudit.measures import Scope
from attnaudit.statistics.decisions import LEAST_INPUTS
from attnaudit.training import Monitor
from tests.primal_models import MEASURES, at_kernel_svd, images, of_primal, vision_transformer

REFERENCES = ("gaussian", "planted")


def values(table, measure, reference):
    chosen = pc.and_(pc.equal(table["measure"], measure), pc.equal(table["reference"], reference))
    return table.filter(chosen)["value"].to_pylist()


def test_primal_layers_have_their_measures_with_their_references():
    run = attnaudit.audit(vision_transformer(), images(), claims=[], repeats=2)
    mine = of_primal(run.evidence)
    assert set(mine["measure"].to_pylist()) == MEASURES | {"kernel_rank", "identifiable"}
    assert set(mine["reference"].to_pylist()) == {"observed", "gaussian", "planted"}
    assert set(mine["layer"].to_pylist()) == {2}
    for measure in MEASURES:
        assert len(values(mine, measure, "observed")) == 3 * 2
        assert len(values(mine, measure, "gaussian")) == 3 * 2 * 2
    assert values(mine, "ksvd_left_overlap", "planted") == pytest.approx([1.0] * 6)  # only the null is repeated
    assert run.summary.capture.refused_layers == ()
    statistics = run.summary.models["VisionTransformer"]
    assert statistics["observed"]["ksvd_left_overlap"].n == 6
    assert statistics["planted"]["ksvd_dual_residual"].max == pytest.approx(0, abs=1e-6)


def test_measures_that_are_named_are_those_of_primal_layers_too():
    run = attnaudit.audit(vision_transformer(), images(), claims=[], measures=["ksvd_left_overlap"])
    assert set(run.evidence["measure"].to_pylist()) == {"ksvd_left_overlap", "identifiable"}


def test_the_objective_is_that_of_the_loss():
    model, inputs = vision_transformer().eval(), images(2)
    found = values(attnaudit.audit(model, inputs, claims=[], references=[]).evidence, "ksvd_objective", "observed")
    with torch.no_grad():
        model(inputs)
        assert (sum(found) / 4) ** 2 == pytest.approx(attention.ksvd_loss(model).item(), rel=1e-4)


def test_a_layer_at_the_kernel_svd_of_its_input_is_found_there():
    inputs = torch.randn(1, 20, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rows = attnaudit.audit(at_kernel_svd(inputs), inputs, claims=[]).evidence
    for measure in ("ksvd_left_overlap", "ksvd_right_overlap", "ksvd_dual_residual"):
        assert ALL[measure].scope is Scope.PRIMAL
        assert values(rows, measure, "observed") == pytest.approx([ALL[measure].ideal], abs=1e-6)


def test_a_model_of_nothing_but_primal_attention_can_be_audited():
    layers = [attention.PrimalAttention(8, 2, rank=2, tokens=17) for _ in range(3)]
    run = attnaudit.audit(nn.Sequential(*layers), torch.randn(2, 17, 8), claims=[])
    assert set(run.evidence["theory"].to_pylist()) == {"ksvd-primal"}
    assert run.summary.observed("Sequential")["ksvd_right_overlap"].n == 3 * 2 * 2


@pytest.mark.parametrize("exact", [True, False])
def test_the_claim_about_regularised_primal_attention_is_judged_on_a_model(exact):
    inputs = torch.randn(1, 20, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    model = at_kernel_svd(inputs)
    if not exact:
        model[1].weight_e.data.normal_(generator=torch.Generator().manual_seed(1))
    # The same for the layer, whose weights fit one input, and other bytes, so that they do not count as copies.
    several = inputs + 1e-12 * torch.arange(LEAST_INPUTS)[:, None, None]
    (verdict,) = attnaudit.audit(model, several, claims=["ksvd-regularised"], references=REFERENCES).verdicts
    assert (verdict.claim, verdict.model) == ("ksvd-regularised", "Sequential")
    left, right = (score.score.mean for score in verdict.scores)
    assert right == pytest.approx(1, abs=1e-6)
    assert (left == pytest.approx(1, abs=1e-6)) == exact
    assert (verdict.word == "supported") == exact
    (copies,) = attnaudit.audit(
        model, inputs.repeat(LEAST_INPUTS, 1, 1), claims=["ksvd-regularised"], references=REFERENCES
    ).verdicts
    assert (copies.word, copies.finding) == ("undecided", "too few inputs")  # copies count once


def test_a_model_without_primal_attention_has_no_verdict_on_it(caplog):
    torch.manual_seed(0)
    run = attnaudit.audit(attention.SoftmaxAttention(8, 2), torch.randn(4, 20, 8), claims=["ksvd-regularised"])
    assert run.verdicts == ()
    assert "ksvd-regularised is not judged" in caplog.text


def test_an_audit_and_a_monitor_measure_the_same():
    model, inputs = vision_transformer(), images(2)
    monitored = of_primal(Monitor(model, inputs, scores=2, tell=lambda line: None).measure(0))
    audited = of_primal(attnaudit.audit(model, inputs, claims=[]).evidence)
    for measure in MEASURES | {"kernel_rank"}:
        assert values(audited, measure, "observed") == values(monitored, measure, "observed")
