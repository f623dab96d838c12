"""The monitor on models with Primal-Attention."""

import pyarrow.compute as pc
import pytest
import torch
import torch.nn.functional as F

from attnaudit import attention
from attnaudit.records.schema import SCHEMA
from attnaudit.training import Monitor
from tests.primal_models import MEASURES, Calling, at_kernel_svd, images, mask, of_primal, vision_transformer


@pytest.mark.parametrize("layer", [0, 2])
def test_rows_have_every_input_head_reference_and_measure_once(layer):
    table = Monitor(vision_transformer(layer), images(), scores=2, tell=lambda line: None).measure(5)
    assert table.schema.equals(SCHEMA)
    mine = of_primal(table)
    keys = mine.group_by(["input", "head", "reference", "measure"]).aggregate([])
    assert keys.num_rows == mine.num_rows == 2 * 2 * (3 * len(MEASURES) + 2)
    assert set(mine["measure"].to_pylist()) == MEASURES | {"kernel_rank", "identifiable"}
    assert set(mine["reference"].to_pylist()) == {"observed", "gaussian", "planted"}
    for column, only in (("layer", layer), ("step", 5), ("tokens", 17), ("dim", 4)):
        assert set(mine[column].to_pylist()) == {only}
    others = table.filter(pc.equal(table["theory"], "kpca"))
    assert set(others["layer"].to_pylist()) == {0, 1, 2} - {layer}


def test_the_line_and_the_scores_say_where_the_layer_lies():
    lines = []
    monitor = Monitor(vision_transformer(), {"test": images()}, tell=lines.append)
    monitor.measure(0)
    (line,) = lines
    assert "singular vectors left and right " in line
    scores = monitor.latest.batches["test"].scores
    for name in ("ksvd_left_overlap", "ksvd_right_overlap"):
        assert scores[name].informative == 4
        assert scores[name].null == "gaussian"
        assert scores[name].means["planted"] == pytest.approx(1)
        assert scores[name].means["gaussian"] < 1
    assert scores["ksvd_dual_residual"].means["planted"] == pytest.approx(0, abs=1e-6)


def test_a_layer_at_the_kernel_svd_of_its_input_scores_one():
    inputs = torch.randn(1, 20, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    monitor = Monitor(at_kernel_svd(inputs), inputs, tell=lambda line: None)
    monitor.measure(0)
    for name in ("ksvd_left_overlap", "ksvd_right_overlap", "ksvd_dual_residual"):
        assert monitor.latest.batches["batch"].scores[name].score.mean == pytest.approx(1, abs=1e-6)


def test_the_objective_is_that_of_the_loss():
    model, inputs = vision_transformer(), images(2)
    table = of_primal(Monitor(model, inputs, scores=2, tell=lambda line: None).measure(0))
    mine = table.filter(pc.and_(pc.equal(table["measure"], "ksvd_objective"), pc.equal(table["reference"], "observed")))
    with torch.no_grad():
        model(inputs)
        loss = attention.ksvd_loss(model).item()
    assert (sum(mine["value"].to_pylist()) / 4) ** 2 == pytest.approx(loss, rel=1e-4)


def test_a_regularised_training_with_the_monitor_is_bit_identical_to_one_without():
    ends = []
    for watched in (False, True):
        model = vision_transformer().train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        torch.manual_seed(3)
        monitor = Monitor(model, images(), every=1, tell=lambda line: None)
        if watched:
            monitor.attach(optimizer)
        for _ in range(3):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(torch.randn(4, 3, 16, 16)), torch.randint(10, (4,)))
            (loss + attention.ksvd_loss(model)).backward()
            optimizer.step()
        assert len(monitor.history) == (4 if watched else 0)
        ends.append((loss, model.state_dict(), torch.rand(3)))
    torch.testing.assert_close(ends[1], ends[0], rtol=0, atol=0)


def test_without_scored_inputs_the_layer_is_named_as_not_measured():
    lines = []
    table = Monitor(vision_transformer(), images(), scores=0, tell=lines.append).measure(0)
    assert of_primal(table).num_rows == 0
    assert "1 of 3 attention layers are not measured (blocks.2.attn: Primal-Attention has no softmax" in lines[0]
    assert "singular vectors" not in lines[1]


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (Calling(mask(2)), "padded inputs have kernels of different sizes"),
        (Calling(attn_mask=mask(1)), "padded inputs have kernels of different sizes"),
        (Calling(is_causal=True), "a causal layer has another kernel for every token"),
        (Calling(times=2), "it runs several times in a forward pass"),
    ],
)
def test_a_layer_without_one_kernel_is_refused_counted_and_named_once(model, reason):
    lines = []
    monitor = Monitor(model, torch.randn(2, 17, 8), tell=lines.append)
    tables = [monitor.measure(step) for step in range(2)]
    assert all(of_primal(table).num_rows == 0 for table in tables)
    assert lines[0] == f"1 of 2 attention layers are not measured (primal: {reason})"
    assert len(lines) == 3
