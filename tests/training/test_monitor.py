"""The monitor: right numbers, and a training that does not notice it."""

import json
import logging
import random
import sys

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import torch
from torch import nn

import attnaudit
from attnaudit import attention
from attnaudit.errors import CaptureError, InputError, MissingExtraError, RunFolderError, UsageError
from attnaudit.evidence.folder import RunFolder
from attnaudit.evidence.schema import SCHEMA
from attnaudit.training import Monitor
from tests.training.networks import HEADS, WIDTH, batch, network, train

KEY = ["input", "layer", "head", "control", "repeat", "measure", "step"]


def quiet(line):
    """Lines go nowhere."""


def value(table, measure, *, batch="batch", layer=0, head=0, step=None):
    keep = {"measure": measure, "input": batch, "layer": layer, "head": head, "control": "observed"}
    keep |= {} if step is None else {"step": step}
    for column, wanted in keep.items():
        table = table.filter(pc.equal(table[column], wanted))
    (number,) = table["value"].to_pylist()
    return number


def aggregates(table, batch="batch"):
    return table.filter(pc.equal(table["input"], batch))


@pytest.mark.parametrize("mode", ["eval", "train"])
@pytest.mark.parametrize("reentrant", [None, True, False])
def test_a_training_with_the_monitor_is_bit_identical_to_one_without(mode, reentrant):
    ends = []
    for watched in (False, True):
        model = network(reentrant=reentrant)
        model.blocks[0].drop.eval()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        random.seed(5), np.random.seed(5), torch.manual_seed(5)
        monitor = Monitor(model, {"train": batch(), "test": batch(seed=3)}, every=2, mode=mode, tell=quiet)
        if watched:
            monitor.attach(optimizer)
        losses = train(model, 5, optimizer)
        assert len(monitor.history) == (3 if watched else 0)
        weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        moments = optimizer.state_dict()["state"]
        passes = [block.passes for block in model.blocks]
        ends.append((losses, weights, moments, passes, random.random(), np.random.rand(), torch.rand(3).tolist()))
    torch.testing.assert_close(ends[1], ends[0], rtol=0, atol=0)


def test_numbers_are_those_of_a_plain_pass_over_the_batch():
    model, inputs = network(), batch()
    table = Monitor(model, inputs, tell=quiet).measure(0)
    assert set(table["layer"].to_pylist()) == {0, 1}
    for layer, heads in enumerate(attnaudit.capture(model, inputs).layers):
        query, key, output = (x.double().view(5, HEADS, 17, -1) for x in (heads.query, heads.key, heads.output))
        scores = query @ key.mT * heads.scale[0].double()
        phi = (query.square().sum(-1) * heads.scale[0].double()).exp() / scores.exp().sum(-1).square()
        h = output.square().sum(-1)
        for head in range(HEADS):
            expected = {
                "phi_norm2": phi[:, head].mean(),
                "output_norm2": h[:, head].mean(),
                "projection_error_mae": (phi - h)[:, head].abs().mean(),
                "projection_error_signed": (phi - h)[:, head].mean(),
                "output_above_phi": (h > phi)[:, head].double().mean(),
            }
            for name, number in expected.items():
                assert value(table, name, layer=layer, head=head) == pytest.approx(number.item(), rel=1e-9)


def test_scored_inputs_have_the_evidence_of_an_audit():
    model, inputs = network(), batch()
    monitor = Monitor(model, inputs, scores=2, tell=quiet)
    table = monitor.measure(0)
    run = attnaudit.audit(model, inputs[:2], claims=["kpca-values"], controls=["planted"])
    observed = pc.equal(run.evidence["control"], "observed")
    for name in ("column_cosine_matched", "projection_error_matched", "projection_error_floor", "kernel_rank"):
        audited = run.evidence.filter(pc.and_(observed, pc.equal(run.evidence["measure"], name)))["value"].to_pylist()
        mine = table.filter(pc.and_(pc.equal(table["measure"], name), pc.equal(table["control"], "observed")))
        assert sorted(mine["value"].to_pylist()) == pytest.approx(sorted(audited), rel=1e-5)
        assert set(mine["input"].to_pylist()) == {"batch/0", "batch/1"}
    score = monitor.latest.batches["batch"].scores["column_cosine_matched"]
    assert score.heads == 2 * 2 * HEADS
    assert score.null < score.planted == pytest.approx(1)


def test_a_head_that_obeys_the_theory_scores_one():
    """A layer whose values are, for the first input, the kernel-PCA values of its keys."""

    class Obeying(nn.Module):
        def forward(self, x):
            key = x[:, None]
            found = attnaudit.kernel.spectrum(key[:, 0].double(), 4)
            values = attnaudit.kernel.kernel_pca_values(found)
            value = (values.values * torch.exp(values.log_scale)[:, None, None])[:, None].to(x.dtype)
            return torch.nn.functional.scaled_dot_product_attention(key, key, value)

    inputs = torch.randn(2, 20, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    monitor = Monitor(Obeying(), inputs, tell=quiet)
    monitor.measure(0)
    reading = monitor.latest.batches["batch"]
    assert reading.scores["column_cosine_matched"].mean == pytest.approx(1, abs=1e-6)
    assert reading.scores["projection_error_matched"].mean == pytest.approx(1, abs=1e-6)
    assert reading.means["projection_error_signed"] > 0
    assert reading.means["output_above_phi"] == 0
    assert reading.explained == pytest.approx(
        reading.means["output_norm2"] / reading.means["phi_norm2"], rel=1e-6
    )  # what the outputs, being projections, keep


def test_rows_have_the_schema_a_step_and_no_double():
    table = Monitor(network(), {"train": batch(), "test": batch(seed=2)}, legacy=True, tell=quiet).measure(7)
    assert table.schema.equals(SCHEMA)
    assert set(table["step"].to_pylist()) == {7}
    assert table.group_by(KEY).aggregate([]).num_rows == table.num_rows
    assert set(table["input"].to_pylist()) == {"train", "test", "train/0", "train/1", "test/0", "test/1"}
    assert set(aggregates(table, "test")["measure"].to_pylist()) == {
        "phi_norm2", "phi_norm2_median", "output_norm2", "projection_error_signed", "projection_error_mae",
        "projection_error_rel_output", "projection_error_rel_phi", "output_above_phi", "legacy_log_projection_error",
    }  # fmt: skip


def test_the_legacy_formula_says_why_it_is_missing():
    table = aggregates(Monitor(network(), batch(), legacy=True, scores=0, tell=quiet).measure(0))
    lost = table.filter(pc.is_null(table["value"]))
    assert set(lost["measure"].to_pylist()) == {"legacy_log_projection_error"}
    assert "no logarithm" in lost["reason"][0].as_py()


@pytest.mark.parametrize("reentrant", [True, False])
def test_gradient_checkpointing_changes_no_number(reentrant):
    plain = Monitor(network(), batch(), tell=quiet).measure(0)
    assert Monitor(network(reentrant=reentrant), batch(), tell=quiet).measure(0).equals(plain)


def test_autocast_changes_no_number():
    plain = Monitor(network(), batch(), tell=quiet).measure(0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert Monitor(network(), batch(), tell=quiet).measure(0).equals(plain)


def test_a_model_in_bfloat16_is_measured_in_its_own_type():
    plain = Monitor(network(), batch(), scores=0, tell=quiet).measure(0)
    coarse = Monitor(network().bfloat16(), batch().bfloat16(), scores=0, tell=quiet).measure(0)
    exact, rounded = (value(table, "output_norm2") for table in (plain, coarse))
    assert rounded == pytest.approx(exact, rel=0.05)
    assert rounded != exact


def whole(model, backend):
    return torch.compile(model, backend=backend)


def in_place(model, backend):
    model.compile(backend=backend)
    return model


def parts(model, backend):
    for place, block in enumerate(model.blocks):
        model.blocks[place] = torch.compile(block, backend=backend)
    return model


@pytest.mark.parametrize("compiled", [whole, in_place, parts])
def test_compiled_models_are_seen_and_not_compiled_again(compiled):
    torch._dynamo.reset()
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    model = compiled(network(), backend)
    model.eval()(batch())
    before = len(graphs)
    assert before
    monitor = Monitor(model, batch(), tell=quiet)
    table = monitor.measure(0)
    assert table["value"].equals(Monitor(network(), batch(), tell=quiet).measure(0)["value"])
    model(batch())
    assert len(graphs) == before


def test_the_ksvd_loss_of_a_pass_under_way_survives_a_measurement():
    losses = []
    for watched in (False, True):
        torch.manual_seed(0)
        layers = [attention.SoftmaxAttention(8, 2), attention.PrimalAttention(8, 2, rank=2, tokens=17)]
        model = nn.Sequential(*layers)
        inputs = torch.randn(3, 17, 8)
        task = model(inputs).square().mean()
        lines = []
        if watched:
            monitor = Monitor(model, torch.randn(2, 17, 8), tell=lines.append)
            for step in range(2):
                monitor.measure(step)
            assert len([line for line in lines if "1 of 2 attention layers are not measured" in line]) == 1
            assert "no softmax" in lines[0]
        loss = task + attention.ksvd_loss(model)
        loss.backward()
        losses.append((loss, [parameter.grad for parameter in model.parameters()]))
    torch.testing.assert_close(losses[1], losses[0], rtol=0, atol=0)


def test_keyword_and_positional_arguments_reach_the_model():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = network()

        def forward(self, left, right):
            return self.net(left + 2 * right)

    left, right = batch(seed=1), batch(seed=2)
    plain = Monitor(network(), left + 2 * right, name="n", tell=quiet).measure(0)
    assert Monitor(Both(), (left, right), name="n", tell=quiet).measure(0).equals(plain)
    by_name = Monitor(Both(), {"batch": {"right": right, "left": left}}, name="n", tell=quiet).measure(0)
    assert by_name.equals(plain)


def test_evidence_is_kept_by_step_and_found_again(tmp_path):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Monitor(model, batch(), out=tmp_path / "run", every=2, tell=quiet).attach(optimizer) as monitor:
        train(model, 5, optimizer)
    assert sorted(set(monitor.evidence.table()["step"].to_pylist())) == [0, 2, 4]
    train(model, 5, optimizer)
    assert len(monitor.history) == 3, "it was detached"
    settings = json.loads((tmp_path / "run" / "run.json").read_text())
    assert list(settings["steps"]) == ["0", "2", "4"]
    assert settings["parts"] == list(settings["steps"].values())
    assert settings["identity"]["monitor"]["mode"] == {"batch": "eval"}
    assert "torch" in settings["versions"]
    assert pq.read_table(tmp_path / "run" / "evidence").num_rows == len(monitor.evidence)
    again = Monitor(model, batch(), out=tmp_path / "run", every=3, tell=quiet)
    again.attach(optimizer, step=4)
    train(model, 2, optimizer)
    assert sorted(set(again.evidence.table()["step"].to_pylist())) == [0, 2, 4, 6]


def test_a_step_measured_again_replaces_itself(tmp_path):
    model = network()
    for out in (None, tmp_path / "run"):
        monitor = Monitor(model, batch(), out=out, tell=quiet)
        first = monitor.measure(12)
        with torch.no_grad():
            model.blocks[0].qkv.weight.mul_(1.5)
        monitor.measure(9)
        second = monitor.measure(12)
        rows = monitor.evidence.table()
        assert rows.num_rows == 2 * first.num_rows
        assert value(rows, "phi_norm2", step=12) == value(second, "phi_norm2") != value(first, "phi_norm2")
        assert rows["step"].to_pylist() == sorted(rows["step"].to_pylist())


def test_parts_go_into_the_folder_of_another_owner(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.open({"recipe": "mine"}, {"parts": ["something-else"]})
    monitor = Monitor(network(), batch(), out=folder, tell=quiet)
    table = monitor.measure(0)
    settings = folder.settings()
    assert settings["identity"] == {"recipe": "mine"}
    assert settings["parts"] == ["something-else", settings["steps"]["0"]]
    assert len(monitor.evidence) == table.num_rows


def test_steps_are_those_of_the_optimiser_not_micro_batches():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    monitor = Monitor(model, batch(), every=2, scores=0, tell=quiet).attach(optimizer)
    for micro in range(12):
        model(batch()).sum().backward()
        if micro % 3 == 2:
            optimizer.step()
            optimizer.zero_grad()
    assert [reading.step for reading in monitor.history] == [0, 2, 4]


@pytest.mark.parametrize("fused", [False, True])
def test_steps_that_a_scaler_skips_do_not_count(fused):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    taken, due = 0, []
    monitor = Monitor(model, batch(), every=3, scores=0, tell=quiet).attach(optimizer)
    for round in range(12):
        optimizer.zero_grad()
        scaler.scale(model(batch()).sum()).backward()
        if round in (1, 2, 5):
            model.head.bias.grad.fill_(torch.inf)
        else:
            taken += 1
            due += [round] if taken % 3 == 0 else []
        before = len(monitor.history)
        scaler.step(optimizer)
        assert (len(monitor.history) > before) == (round in due)
        scaler.update()
    assert [reading.step for reading in monitor.history] == [0, 3, 6, 9]


def test_a_line_is_told_or_logged(caplog):
    lines = []
    Monitor(network(), {"train": batch(), "test": batch(seed=2)}, tell=lines.append).measure(1500)
    (line,) = lines
    assert line.startswith("step 1,500  train: J ")
    for part in ("‖φ‖²", "‖h‖²", "kernel PCA explains", "0 is chance, 1 the claim", "|  test: J "):
        assert part in line
    with caplog.at_level(logging.INFO, logger="attnaudit.training"):
        Monitor(network(), batch(), scores=0).measure(0)
    assert [record.name for record in caplog.records] == ["attnaudit.training"]
    assert "alignment" not in caplog.text


def test_heads_with_too_few_tokens_are_said_to_decide_nothing():
    lines = []
    Monitor(network(), batch()[:, :6], tell=lines.append).measure(0)
    assert "alignment not identifiable" in lines[0]


def test_curves_go_to_tensorboard_on_request(monkeypatch, tmp_path):
    points = {}

    class Writer:
        def add_scalar(self, tag, scalar_value, global_step):
            points[tag, global_step] = scalar_value

        def flush(self):
            points["flushed", None] = len(points)

    table = Monitor(network(), {"train": batch()}, tensorboard=Writer(), tell=quiet).measure(3)
    by_head = [value(table, "projection_error_mae", batch="train", layer=1, head=head) for head in range(HEADS)]
    assert points["train/projection_error_mae/layer 1", 3] == pytest.approx(np.mean(by_head))
    assert points["flushed", None] == len(points) - 1
    assert {"train/projection_error_mae", "train/explained", "train/score/procrustes"} <= {tag for tag, _ in points}
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(MissingExtraError, match=r"needs tensorboard.*attnaudit\[tensorboard\]"):
        Monitor(network(), batch(), tensorboard=tmp_path / "curves", tell=quiet).measure(0)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"every": 0}, "every is 0"),
        ({"every": "hour"}, "every is 'hour'"),
        ({"scores": -1}, "scores is -1"),
        ({"mode": "both"}, "mode is 'both'"),
        ({"controls": ["untrained"]}, "step 0 instead"),
        ({"controls": ["vibes"]}, "no control 'vibes'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(arguments, problem):
    with pytest.raises(UsageError, match=problem):
        Monitor(network(), batch(), **arguments)


@pytest.mark.parametrize(
    ("batches", "error", "problem"),
    [
        ({}, UsageError, "none was given"),
        ({"a/b": batch()}, UsageError, "a stroke in its name"),
        ({"x": batch()}, UsageError, "x are arguments of Net, not names of batches"),
        ([batch()], InputError, "'batch' is a list"),
        ({"train": "words"}, InputError, "'train' holds no tensor"),
        ({"train": torch.tensor(1.0)}, InputError, "'train' holds no tensor"),
    ],
)
def test_batches_that_are_none_are_refused(batches, error, problem):
    with pytest.raises(error, match=problem):
        Monitor(network(), batches)


def test_a_batch_the_model_refuses_is_named_at_once():
    model = network()
    monitor = Monitor(model, {"train": batch()[..., :2]})
    with pytest.raises(InputError, match=r"Net cannot be called with the batch 'train' \(RuntimeError: "):
        monitor.attach(torch.optim.SGD(model.parameters()))


def test_a_model_without_attention_is_refused_at_once():
    model = nn.Linear(3, 3)
    with pytest.raises(CaptureError, match="it calls no attention at all"):
        Monitor(model, torch.randn(2, 3)).attach(torch.optim.SGD(model.parameters()))


def test_a_folder_of_another_run_is_refused(tmp_path):
    Monitor(network(), batch(), out=tmp_path / "run", tell=quiet).measure(0)
    with pytest.raises(RunFolderError, match="holds a run with other inputs"):
        Monitor(network(), batch(seed=9), out=str(tmp_path / "run")).measure(0)
    with pytest.raises(RunFolderError, match="holds a run with other monitor"):
        Monitor(network(), batch(), out=tmp_path / "run", mode="train").measure(0)


def test_what_is_no_optimiser_is_refused():
    with pytest.raises(UsageError, match="is no torch optimiser"):
        Monitor(network(), batch()).attach(nn.Linear(WIDTH, 1))
    with pytest.raises(UsageError, match="where an epoch ends"):
        Monitor(network(), batch(), every="epoch").attach(torch.optim.SGD(network().parameters()))


def test_each_batch_is_measured_in_its_own_mode():
    inputs = {"train": batch(), "test": batch()}
    rows = Monitor(network(), inputs, scores=0, mode={"train": "train"}, tell=quiet).measure(0)
    same = Monitor(network(), inputs, scores=0, tell=quiet).measure(0)
    for name, differs in (("train", True), ("test", False)):
        values = [t.filter(pc.equal(t["input"], name))["value"].to_pylist() for t in (rows, same)]
        assert (values[0] != values[1]) is differs
