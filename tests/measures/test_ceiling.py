"""The best projection of a layer's inputs, fitted to one half of the inputs and measured on the other."""

from dataclasses import replace

import pytest
import torch

from attnaudit.kernel.best_projection import ProjectionSums, leading_projections, with_constant
from attnaudit.kernel.prediction import Prediction
from attnaudit.measures.ceiling import Ceiling
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.measure_input import MeasureInput, PredictedValues
from attnaudit.measures.subspace import orthonormal, value_subspace_overlap
from attnaudit.protocol import Protocol
from tests.heads import random_heads
from tests.measures.references.case import labelled

INPUTS, HEADS, DIM = 8, 2, 4


class Projection:
    """Values are one projection of the inputs: what a network can have."""

    name, text = "projection", "a projection"

    def predict(self, heads, spectrum, protocol):
        source = heads.source.double()
        weights = torch.randn(HEADS, source.shape[-1], DIM, generator=torch.Generator().manual_seed(1)).double()
        values = (source[:, None] @ weights).flatten(0, 1)
        return Prediction(values, torch.zeros(len(heads), dtype=torch.float64), (None,) * len(heads))


class Noise:
    """Values have nothing to do with the inputs: what no network can have."""

    name, text = "noise", "noise"

    def predict(self, heads, spectrum, protocol):
        values = torch.randn(heads.value.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
        return Prediction(values, torch.zeros(len(heads), dtype=torch.float64), (None,) * len(heads))


def layer(tokens=20):
    heads = labelled(random_heads(0, heads=INPUTS * HEADS, tokens=tokens, dim=DIM), inputs=INPUTS)
    return heads


def fitted(theory, *batches):
    """By reference and input, the overlaps of its heads with what the theory predicts."""
    ceiling = Ceiling((theory,), {f"input-{place}": place % 2 for place in range(INPUTS)})
    for heads in batches:
        ceiling.add(KeyKernel(heads, Protocol.EXACT))
    found = {}
    for measured in ceiling.measure(Protocol.EXACT):
        by_row = measured.values["value_subspace_overlap"].split(HEADS)
        for entry, values in zip(measured.heads.index[::HEADS], by_row, strict=True):
            found.setdefault(measured.key.reference, {}).setdefault(entry.input, []).append(values)
    return found


def overlaps(theory, *batches):
    """The same as one tensor, in order of inputs."""
    return {
        reference: torch.stack([torch.cat(by_input[name]) for name in sorted(by_input)])
        for reference, by_input in fitted(theory, *batches).items()
    }


@pytest.fixture
def refined_from_two(monkeypatch):
    """Projections are refined on few inputs."""
    monkeypatch.setattr("attnaudit.measures.ceiling.REFINED_FROM", 2)


@pytest.mark.usefixtures("refined_from_two")
def test_a_theory_that_a_projection_satisfies_is_reached_on_both_halves():
    found = overlaps(Projection(), layer())
    assert set(found) == {"best_projection", "best_projection_fitted"}
    for values in found.values():
        torch.testing.assert_close(values, torch.ones(INPUTS, HEADS, dtype=torch.float64))


@pytest.mark.usefixtures("refined_from_two")
def test_a_theory_that_no_projection_satisfies_is_reached_only_on_the_inputs_of_the_fit():
    found = overlaps(Noise(), layer())
    assert found["best_projection_fitted"].mean() > found["best_projection"].mean() + 0.05
    assert found["best_projection"].mean() < 0.4


def test_a_projection_is_not_refined_on_few_inputs():
    assert set(overlaps(Noise(), layer())) == {"best_projection"}


def test_each_input_is_measured_by_the_fit_to_the_other_half():
    heads = layer()
    moved = replace(heads, source=torch.cat([heads.source[:1] + 5, heads.source[1:]]))
    before, after = (overlaps(Noise(), own)["best_projection"] for own in (heads, moved))
    same = torch.isclose(before, after).all(dim=1)
    # Input 0 is in the first half: it changes its own numbers and those of the other half, not those of its own half.
    assert same.tolist() == [False, False, True, False, True, False, True, False]


def test_the_overlap_is_that_of_the_measure():
    heads = layer()
    keys, theory = KeyKernel(heads, Protocol.EXACT), Noise()
    sums = [
        ProjectionSums.of(with_constant(heads.source[half::2]), orthonormal_of(theory, keys)[half::2])
        for half in (0, 1)
    ]
    weights = leading_projections(sums, DIM)
    values = torch.stack([with_constant(heads.source)[place] @ weights[1 - place % 2] for place in range(INPUTS)])
    at = MeasureInput(replace(heads, value=values.flatten(0, 1)), keys, PredictedValues(keys, theory))
    measured = value_subspace_overlap(at).reshape(INPUTS, HEADS)
    torch.testing.assert_close(overlaps(theory, heads)["best_projection"], measured)


def orthonormal_of(theory, keys):
    values = PredictedValues(keys, theory).prediction.values
    return orthonormal(values).unflatten(0, (INPUTS, HEADS))


def test_inputs_in_several_portions_give_the_same_fit():
    heads = layer()
    portions = [heads.part(start, start + 4) for start in range(0, len(heads), 4)]
    whole, cut = overlaps(Projection(), heads), overlaps(Projection(), *portions)
    torch.testing.assert_close(whole, cut)


def test_only_some_inputs_are_kept_whatever_their_number(monkeypatch):
    monkeypatch.setattr("attnaudit.measures.ceiling.KEPT", 2)
    assert set(fitted(Noise(), layer())["best_projection"]) == {"input-0", "input-1", "input-2", "input-3"}


def test_without_the_inputs_of_a_layer_there_is_no_ceiling():
    assert fitted(Noise(), replace(layer(), source=None)) == {}


@pytest.mark.usefixtures("refined_from_two")
def test_inputs_of_different_lengths_share_a_fit():
    found = fitted(Projection(), layer(20), layer(30))
    assert {len(values) for by_input in found.values() for values in by_input.values()} == {2}
    for by_input in found.values():
        for values in by_input.values():
            torch.testing.assert_close(torch.cat(values), torch.ones(2 * HEADS, dtype=torch.float64))
