"""Evidence of Primal-Attention in a finished model."""

import pyarrow.compute as pc
import pytest
import torch
from torch import nn

from attnaudit import attention
from attnaudit.errors import CaptureError
from attnaudit.training import Monitor, primal_evidence
from tests.training.test_primal_sight import Calling, images, of_primal, vision_transformer


def test_a_finished_model_has_the_rows_of_the_monitor():
    model, inputs = vision_transformer(), images(2)
    watched = of_primal(Monitor(model, inputs, scores=2, name="m", tell=lambda line: None).measure(0))
    found = primal_evidence(model, inputs, name="m").table()
    assert found.drop(["step"]).to_pylist() == watched.drop(["step"]).to_pylist()
    assert found["step"].null_count == found.num_rows


def test_references_are_drawn_as_often_as_asked():
    found = primal_evidence(vision_transformer(), images(2), repeats=3).table()
    for reference, repeats in (("observed", {0}), ("gaussian", {0, 1, 2}), ("planted", {0, 1, 2})):
        assert set(found.filter(pc.equal(found["reference"], reference))["repeat"].to_pylist()) == repeats


def test_a_model_of_nothing_but_primal_attention_is_measured_layer_by_layer():
    layers = [attention.PrimalAttention(8, 2, rank=2, tokens=17) for _ in range(3)]
    found = primal_evidence(nn.Sequential(*layers), torch.randn(2, 17, 8)).table()
    assert sorted(set(found["layer"].to_pylist())) == [0, 1, 2]


def test_the_model_is_afterwards_what_it_was():
    model = vision_transformer().train()
    model.blocks[0].eval()
    loss = model(images()).sum()
    primal_evidence(model, images())
    assert [block.training for block in model.blocks] == [False, True, True]
    (loss + attention.ksvd_loss(model)).backward()
    assert model.blocks[2].attn.root_singular.grad.abs().max() > 0


def test_a_model_without_primal_attention_that_can_be_measured_is_refused():
    with pytest.raises(CaptureError, match=r"No Primal-Attention of SoftmaxAttention .* \(it has no such layer\)"):
        primal_evidence(attention.SoftmaxAttention(8, 2), torch.randn(2, 17, 8))
    with pytest.raises(CaptureError, match="primal: a causal layer has another kernel"):
        primal_evidence(Calling(is_causal=True), torch.randn(2, 17, 8))
