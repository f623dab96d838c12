"""The projection error, against brute force and against the study's toy example."""

import itertools
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnaudit.capture.key_heads import by_key_head
from attnaudit.measures import MeasureInput
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.projection import (
    PROJECTION_ALIGNMENT_MATCHED,
    PROJECTION_ALIGNMENT_ROTATED,
    PROJECTION_ERROR_FLOOR,
    PROJECTION_ERROR_MATCHED,
    PROJECTION_ERROR_ROTATED,
)
from attnaudit.measures.references import planted
from tests.heads import random_heads
from tests.measures.case import input_of, seeds
from tests.measures.references.case import reference_input


def errors_of(heads):
    at = input_of(heads)
    measures = (PROJECTION_ERROR_MATCHED, PROJECTION_ERROR_ROTATED, PROJECTION_ERROR_FLOOR)
    return {measure.name: measure.function(at) for measure in measures}


def scores_and_projections(heads):
    keys = KeyKernel(heads)
    values = keys.unit_axes.values * keys.unit_axes.log_scale.exp()[:, None, None]
    return keys.phi[0], heads.output[0], heads.attended(values)[0]


@given(seeds, st.integers(1, 5))
def test_assignment_equals_brute_force_over_all_orders_and_signs(seed, dim):
    heads = random_heads(seed, heads=1, tokens=12, dim=dim)
    phi, output, projected = scores_and_projections(heads)
    best = min(
        (phi + output.square().sum(-1) - 2 * (output[:, list(order)] * torch.tensor(signs) * projected).sum(-1)).mean()
        for order in itertools.permutations(range(dim))
        for signs in itertools.product((-1.0, 1.0), repeat=dim)
    )
    assert errors_of(heads)["projection_error_matched"].item() == pytest.approx(best.item(), rel=1e-10)


@given(seeds, st.floats(0.1, 3))
def test_floor_below_rotated_below_matched(seed, size):
    numbers = errors_of(random_heads(seed, key_size=size))
    slack = 1e-12 * numbers["projection_error_matched"].abs()
    assert (numbers["projection_error_floor"] <= numbers["projection_error_rotated"] + slack).all()
    assert (numbers["projection_error_rotated"] <= numbers["projection_error_matched"] + slack).all()


@given(seeds)
def test_planted_values_attain_the_floor(seed):
    heads = random_heads(seed)
    values = planted.values(reference_input(heads))
    numbers = errors_of(replace(heads, value=values, output=heads.attended(values)))
    torch.testing.assert_close(
        numbers["projection_error_matched"], numbers["projection_error_floor"], rtol=1e-9, atol=1e-15
    )


def test_planted_values_attain_the_floor_of_heads_that_share_their_keys():
    heads = random_heads(0)
    shared = replace(heads, key=heads.key[[0, 0]], value=heads.value[[0, 0]], key_heads=(0, 0))
    one = by_key_head(replace(shared, output=shared.attended(shared.value)))
    values = planted.values(reference_input(one))
    numbers = errors_of(replace(one, value=values, output=one.attended(values)))
    for name in ("projection_error_matched", "projection_error_rotated"):
        torch.testing.assert_close(numbers[name], numbers["projection_error_floor"], rtol=1e-9, atol=1e-15)


def alignments(heads):
    at = input_of(heads)
    return [measure.function(at) for measure in (PROJECTION_ALIGNMENT_MATCHED, PROJECTION_ALIGNMENT_ROTATED)]


@given(seeds, st.floats(0.1, 3))
def test_alignment_is_between_0_and_1_and_a_rotation_does_not_lower_it(seed, size):
    matched, rotated = alignments(random_heads(seed, key_size=size))
    assert (matched >= 0).all()
    assert (matched <= rotated + 1e-12).all()
    assert (rotated <= 1 + 1e-12).all()


@given(seeds)
def test_planted_outputs_are_aligned(seed):
    heads = random_heads(seed)
    values = planted.values(reference_input(heads))
    for alignment in alignments(replace(heads, value=values, output=heads.attended(values))):
        torch.testing.assert_close(alignment, torch.ones_like(alignment))


@given(seeds, st.floats(0.01, 100), st.sampled_from([1, -1]))
def test_alignment_does_not_depend_on_the_size_of_values_as_the_error_does(seed, size, sign):
    """V → sV is undone by the output projection: it changes nothing that the network computes."""
    heads = random_heads(seed)
    scaled = replace(heads, value=sign * size * heads.value, output=sign * size * heads.output)
    torch.testing.assert_close(alignments(scaled), alignments(heads))
    if abs(size - 1) > 0.1:
        before, after = (errors_of(own)["projection_error_rotated"] for own in (heads, scaled))
        assert not torch.isclose(before, after).any()


@given(seeds)
def test_a_rotation_of_values_changes_the_matched_alignment_alone(seed):
    heads = random_heads(seed)
    turn = torch.linalg.qr(torch.randn(4, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)).Q
    turned = alignments(replace(heads, value=heads.value @ turn, output=heads.output @ turn))
    before = alignments(heads)
    torch.testing.assert_close(turned[1], before[1])
    assert not torch.allclose(turned[0], before[0])


@given(seeds)
def test_error_equals_the_distance_in_feature_space(seed):
    """J = mean_i ‖φ(q_i) - Σ_m h_im u_m‖², with φ written out in the basis of the keys' feature vectors.

    All inner products are known: φ(q)·φ(q), φ(q)·u_m = c_m, and u_m·u_n = δ_mn.
    """
    heads = random_heads(seed, heads=1)
    keys = KeyKernel(heads)
    gram = keys.spectrum.matrix[0]
    coefficients = (keys.spectrum.eigenvectors * keys.spectrum.eigenvalues.rsqrt()[:, None, :])[0]
    axes = coefficients.mT @ gram @ coefficients
    torch.testing.assert_close(axes, torch.eye(4, dtype=torch.float64), rtol=0, atol=1e-9)
    phi, output, projected = scores_and_projections(heads)
    cross = torch.einsum("im,mn,in->i", output, axes, output)
    distance = (phi - 2 * (output * projected).sum(-1) + cross).mean()
    matched = errors_of(heads)["projection_error_matched"].item()
    assert matched <= distance.item() + 1e-9


def cross_term(h, axes):
    """Σ_mn (u_m·u_n) h_m h_n, the term of appendix A.1."""
    return float(torch.einsum("m,mn,n->", h, axes @ axes.mT, h))


def test_appendix_a1_assignments_give_2_and_5_because_its_vectors_are_not_orthonormal():
    h = torch.tensor([1.0, 2.0])
    first, second = torch.tensor([[1.0, 1.0], [-1.0, 0.0]]), torch.tensor([[-1.0, 0.0], [1.0, 1.0]])
    assert (cross_term(h, first), cross_term(h, second)) == (2.0, 5.0)


@given(seeds)
def test_with_orthonormal_axes_the_cross_term_is_the_squared_norm_for_every_assignment(seed):
    generator = torch.Generator().manual_seed(seed)
    h = torch.randn(4, generator=generator, dtype=torch.float64)
    axes = torch.linalg.qr(torch.randn(4, 4, generator=generator, dtype=torch.float64)).Q
    for order in itertools.permutations(range(4)):
        assert cross_term(h, axes[list(order)]) == pytest.approx(h.square().sum().item(), rel=1e-12)


def test_a_reference_shares_the_keys_and_the_prediction_of_the_observed_heads():
    heads = random_heads(0)
    observed = MeasureInput.of(heads)
    reference = MeasureInput(replace(heads, value=heads.value.flip(1)), observed.keys, observed.predicted)
    assert reference.keys.spectrum is observed.keys.spectrum
    assert reference.prediction is observed.prediction
