"""What a monitor measures: the right numbers, however the model is run, and against float64 formulas."""

from dataclasses import replace

import numpy as np
import pyarrow.compute as pc
import pytest
import torch
from torch import nn

import attnaudit
from attnaudit.attention import SoftmaxAttention
from attnaudit.capture import HeadId
from attnaudit.records.schema import SCHEMA
from attnaudit.training import Monitor
from attnaudit.training.monitor_log import ALIGNMENT
from attnaudit.training.probe import batch_measures, token_numbers, why_missing
from tests.heads import fixture_heads, random_heads
from tests.training.networks import HEADS, batch, network
from tests.training.rows import aggregates, quiet, value

KEY = ["input", "layer", "head", "reference", "repeat", "measure", "step"]


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


class Padded(nn.Module):
    """One layer that sees the real tokens alone."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.attention = SoftmaxAttention(16, 2)

    def forward(self, x, attention_mask):
        return self.attention(x, attention_mask[:, None, None].bool())


def test_a_padded_batch_counts_the_tokens_of_all_its_inputs():
    """Inputs of one length are captured together: the lengths of a batch must be joined again."""
    model, lengths = Padded(), (6, 12, 9, 12)
    x = torch.randn(len(lengths), 12, 16, generator=torch.Generator().manual_seed(1))
    mask = torch.tensor([[place < length for place in range(12)] for length in lengths]).long()
    together = Monitor(model, {"train": {"x": x, "attention_mask": mask}}, scores=2, tell=quiet).measure(0)
    sums = dict.fromkeys(range(2), 0.0)
    for own, length in zip(x, lengths, strict=True):
        alone = {"x": own[None, :length], "attention_mask": torch.ones(1, length).long()}
        table = Monitor(model, {"train": alone}, tell=quiet).measure(0)
        for head in sums:
            sums[head] += length * value(table, "output_norm2", batch="train", head=head)
    for head, total in sums.items():
        found = value(together, "output_norm2", batch="train", head=head)
        assert found == pytest.approx(total / sum(lengths), rel=1e-6)
    scored = {name for name in together["input"].to_pylist() if name.startswith("train/")}
    assert scored == {"train/0", "train/1"}


def test_scored_inputs_have_the_evidence_of_an_audit():
    model, inputs = network(), batch()
    monitor = Monitor(model, inputs, scores=2, tell=quiet)
    table = monitor.measure(0)
    run = attnaudit.audit(model, inputs[:2], claims=["kpca-values"], references=["planted"])
    observed = pc.equal(run.evidence["reference"], "observed")
    for name in ("column_cosine_matched", "projection_error_matched", "projection_error_floor", "kernel_rank"):
        audited = run.evidence.filter(pc.and_(observed, pc.equal(run.evidence["measure"], name)))["value"].to_pylist()
        mine = table.filter(pc.and_(pc.equal(table["measure"], name), pc.equal(table["reference"], "observed")))
        assert sorted(mine["value"].to_pylist()) == pytest.approx(sorted(audited), rel=1e-5)
        assert set(mine["input"].to_pylist()) == {"batch/0", "batch/1"}
    score = monitor.latest.batches["batch"].scores["column_cosine_matched"]
    assert score.informative == 2 * 2 * HEADS
    assert score.means[score.null] < score.means["planted"] == pytest.approx(1)


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
    assert set(reading.scores) == set(ALIGNMENT)
    assert [own.score.mean for own in reading.scores.values()] == pytest.approx([1] * len(ALIGNMENT), abs=1e-6)
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


def plain(query, key, output):
    """‖φ‖² and ‖h‖² of each token of one head, as the formulas stand."""
    scale = 1 / np.sqrt(key.shape[-1])
    mass = np.exp(query @ key.T * scale).sum(axis=1)
    return np.exp((query**2).sum(axis=1) * scale) / mass**2, (output**2).sum(axis=1)


def plain_measures(phi, h):
    return {
        "phi_norm2": phi.mean(),
        "phi_norm2_median": np.median(phi),
        "output_norm2": h.mean(),
        "projection_error_signed": (phi - h).mean(),
        "projection_error_mae": np.abs(phi - h).mean(),
        "projection_error_rel_output": (np.abs(phi - h) / (h + 1e-8)).mean(),
        "projection_error_rel_phi": (np.abs(phi - h) / (phi + 1e-8)).mean(),
        "output_above_phi": (h > phi).mean(),
    }


def test_the_reference_head_has_the_values_of_the_specification():
    heads = fixture_heads()
    found = {name: value.item() for name, value in batch_measures(token_numbers(heads, legacy=False)).items()}
    expected = plain_measures(*plain(heads.query[0].numpy(), heads.key[0].numpy(), heads.output[0].numpy()))
    assert found == pytest.approx(expected, rel=1e-12)
    assert found["projection_error_mae"] == pytest.approx(0.361667, rel=2e-6)
    assert found["projection_error_rel_output"] == pytest.approx(0.999483, rel=1e-6)
    assert found["projection_error_rel_phi"] == pytest.approx(2151.03, rel=3e-6)
    assert found["phi_norm2"] == pytest.approx(1.8733e-4, rel=5e-5)
    assert found["phi_norm2_median"] == pytest.approx(1.73421e-4, rel=6e-6)
    assert found["output_norm2"] == pytest.approx(0.361854, rel=2e-6)


def test_numbers_are_over_the_tokens_of_all_inputs_and_windows_head_by_head():
    """Three inputs of two windows of two heads, in the order of a capture."""
    heads = random_heads(0, heads=12)
    heads = replace(heads, output=0.15 * heads.output)  # so that some tokens are above and some below
    places = [(place, window, head) for place in range(3) for window in range(2) for head in range(2)]
    heads = replace(heads, index=tuple(HeadId("m", f"b/{p}", 4, head, window) for p, window, head in places))
    found = batch_measures(token_numbers(heads, legacy=True))
    for head in range(2):
        mine = [place for place, entry in enumerate(places) if entry[2] == head]
        tokens = [plain(*(getattr(heads, n)[place].numpy() for n in ("query", "key", "output"))) for place in mine]
        expected = plain_measures(*(np.concatenate(both) for both in zip(*tokens, strict=True)))
        assert {name: found[name][head].item() for name in expected} == pytest.approx(expected, rel=1e-12)
        assert 0 < found["output_above_phi"][head] < 1


def test_the_temperature_is_the_models_own():
    heads = random_heads(0)
    other = replace(heads, scale=heads.scale / 3)
    assert not torch.allclose(token_numbers(heads, legacy=False)[0], token_numbers(other, legacy=False)[0])


def test_a_mean_whose_sum_overflows_is_still_a_number():
    numbers = torch.stack([torch.full((1, 100), 709.0), torch.zeros(1, 100)]).double()
    assert batch_measures(numbers)["phi_norm2"].item() == pytest.approx(np.exp(709.0))


def test_a_norm_beyond_float64_is_missing_and_says_so():
    numbers = torch.tensor([[[1.0, 800.0], [1.0, 2.0]], [[1.0, 1.0], [1.0, 1.0]]]).double()
    assert batch_measures(numbers)["projection_error_mae"].isfinite().tolist() == [False, True]
    assert "beyond float64" in why_missing(numbers)[0]
    assert "beyond float64" not in why_missing(numbers)[1]
