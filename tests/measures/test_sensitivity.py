"""Noise and other gauges, tried on a few inputs of a batch."""

import torch

from attnaudit.measures import REFERENCES, select
from attnaudit.measures.batches import of_first_inputs
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.measure_input import PredictedValues
from attnaudit.measures.measuring import measure_heads
from attnaudit.measures.references.planted import NOISES
from attnaudit.measures.references.reparametrised import GAUGES, reparametrised
from attnaudit.measures.sensitivity import measure_sensitivity
from tests.measures.references.audits import simulated_heads
from tests.measures.references.case import labelled


def sensitive(selection, heads):
    return {(m.key.reference, m.key.repeat): m for m in tried(selection, heads)}


def tried(selection, heads, **options):
    """Noise and gauges, tried on all inputs."""
    names = list(dict.fromkeys(entry.input for entry in heads.index))
    return list(measure_sensitivity(KeyKernel(heads), selection, names, **options))


def test_noise_is_tried_on_all_heads_of_a_sample_and_gauges_on_those_of_its_first_input():
    heads = labelled(simulated_heads(0, inputs=2, heads=3))
    found = sensitive(select(measures=["procrustes", "phi_norm2"], references=REFERENCES), heads)
    noise = [("planted_with_noise", place) for place in range(len(NOISES))]
    gauges = [(name, place) for name in ("reparametrised", "reparametrised_null") for place in range(GAUGES)]
    assert set(found) == {*noise, *gauges}
    assert all(found[key].heads.index == heads.index for key in noise)
    assert all(found[key].heads.index == heads.index[:3] for key in gauges)
    assert all(set(m.values) == {"procrustes"} for m in found.values())  # what describes is not compared


def test_gauges_measured_at_once_have_the_numbers_of_each():
    selection = select(measures=["procrustes", "linear_cka"], references=["reparametrised"])
    heads = labelled(simulated_heads(0))
    alone = of_first_inputs(heads, 1)
    found = [m for m in tried(selection, heads) if m.key.reference == "reparametrised"]
    assert [m.key.repeat for m in found] == list(range(GAUGES))
    for own in found:
        (expected,) = (
            m
            for m in measure_heads([reparametrised(alone, selection.seed, own.key.repeat)], selection)
            if m.key.reference == "observed"
        )
        assert own.heads.index == alone.index
        for name, values in own.values.items():
            assert torch.allclose(values, expected.values[name], rtol=1e-9, atol=0)


def test_the_null_in_a_gauge_is_that_of_the_seed_beside_the_keys_of_the_gauge():
    selection = select(measures=["procrustes"], references=["random_projection", "reparametrised"], seed=3)
    heads = labelled(simulated_heads(0))
    alone = of_first_inputs(heads, 1)
    found = [m for m in tried(selection, heads) if m.key.reference == "reparametrised_null"]
    for own in found:
        (expected,) = (
            m
            for m in measure_heads([reparametrised(alone, selection.seed, own.key.repeat)], selection)
            if m.key.reference == "random_projection"
        )
        torch.testing.assert_close(own.values["procrustes"], expected.values["procrustes"], rtol=1e-9, atol=0)
    assert len(found) == GAUGES


def test_noise_takes_planted_values_away_from_the_theory():
    found = sensitive(select(measures=["procrustes"], references=REFERENCES), labelled(simulated_heads(0)))
    means = [found["planted_with_noise", place].values["procrustes"].mean().item() for place in range(len(NOISES))]
    assert means == sorted(means, reverse=True)
    assert means[0] > 0.99
    assert means[-1] < 0.9


def test_only_the_inputs_that_are_tried_have_noise_and_gauges():
    heads = labelled(simulated_heads(0, inputs=3, heads=2))
    names = list(dict.fromkeys(entry.input for entry in heads.index))
    selection = select(measures=["procrustes"], references=REFERENCES)
    found = list(measure_sensitivity(KeyKernel(heads), selection, names[1:]))
    inputs = {m.key.reference: {entry.input for entry in m.heads.index} for m in found}
    assert inputs == {
        "planted_with_noise": set(names[1:]),
        "reparametrised": {names[1]},
        "reparametrised_null": {names[1]},
    }
    assert list(measure_sensitivity(KeyKernel(heads), selection, ["another"])) == []


def test_what_is_predicted_already_gives_the_same_numbers():
    heads = labelled(simulated_heads(0, inputs=2, heads=3))
    selection = select(theories=("kpca", "ksvd"), references=REFERENCES)
    solved = KeyKernel(heads)
    known = [PredictedValues(solved, theory) for theory in selection.predicting]
    for own in known:
        assert own.prediction.values.isfinite().all()
    names = [heads.index[0].input]
    alone = measure_sensitivity(KeyKernel(of_first_inputs(heads, 1)), selection, names)
    for one, other in zip(alone, measure_sensitivity(solved, selection, names, known), strict=True):
        assert (one.key, one.heads.index) == (other.key, other.heads.index)
        for name in ("procrustes", "column_cosine_matched", "value_subspace_overlap"):
            torch.testing.assert_close(one.values[name], other.values[name], rtol=1e-9, atol=1e-12)


def test_where_inputs_of_layers_are_not_known_gauges_have_no_null():
    found = sensitive(select(measures=["procrustes"], references=REFERENCES), simulated_heads(0))
    assert {reference for reference, _ in found} == {"planted_with_noise", "reparametrised"}
