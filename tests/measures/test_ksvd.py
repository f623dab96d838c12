"""Overlaps and residual are exact at a kernel SVD, and chance elsewhere."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnaudit.attention.functional import ScorePair, ksvd_objective
from attnaudit.kernel.primal import primal_kernel, primal_scores
from attnaudit.measures import MEASURES, REFERENCES, Scope
from attnaudit.measures.ksvd import why_missing
from attnaudit.measures.primal_input import PrimalInput
from attnaudit.measures.references import PrimalReferenceInput
from tests.measures.case import random_orthogonal, seeds
from tests.primal_heads import dense_kernel, make_primal, random_primal

OVERLAPS = ("ksvd_left_overlap", "ksvd_right_overlap")


def measured(heads):
    at = PrimalInput.of(heads)
    return {name: measure.function(at) for name, measure in MEASURES.items() if measure.scope is Scope.PRIMAL}


def reference(name, heads, seed=0, repeat=0):
    """The heads of a reference."""
    return REFERENCES[name].apply_primal(PrimalReferenceInput(heads, primal_kernel(heads), seed, repeat))


def at_kernel_svd(seed, **shape):
    return reference("planted", random_primal(seed, **shape), seed)


def same_overlaps(before, after):
    for name in OVERLAPS:
        torch.testing.assert_close(after[name], before[name], rtol=1e-9, atol=1e-9)


def test_overlaps_are_those_of_the_definition():
    heads = random_primal(0)
    left, _, right = torch.linalg.svd(dense_kernel(heads))
    for name, vectors, scores in zip(OVERLAPS, (left, right.mT), primal_scores(heads), strict=True):
        basis = torch.linalg.qr(scores).Q
        expected = (vectors[..., :3].mT @ basis).square().sum(dim=(1, 2)) / 3
        torch.testing.assert_close(measured(heads)[name], expected)


def test_the_residual_is_that_of_the_dual_equations():
    heads = random_primal(0)
    kernel, (e, r) = dense_kernel(heads), primal_scores(heads)
    per_token = heads.singular[:, None] / heads.tokens
    one, other = kernel @ (r * per_token), kernel.mT @ (e * per_token)
    error = (e - one).square().sum((1, 2)) + (r - other).square().sum((1, 2))
    size = sum(part.square().sum((1, 2)) for part in (e, r, one, other))
    torch.testing.assert_close(measured(heads)["ksvd_dual_residual"], (error / size).sqrt())


@given(seeds, st.floats(1e-6, 1e6))
def test_overlaps_ignore_basis_sign_and_size_of_the_weights(seed, factor):
    heads = random_primal(seed)
    before = measured(heads)
    mixing = random_orthogonal(seed, 3) @ torch.diag(torch.tensor([1.0, -factor, 3.0], dtype=torch.float64))
    turned = replace(heads, weight_e=heads.weight_e @ mixing, weight_r=-factor * heads.weight_r)
    same_overlaps(before, measured(turned))


@given(seeds)
def test_measures_ignore_the_order_of_tokens(seed):
    heads = random_primal(seed)
    order = torch.randperm(heads.tokens, generator=torch.Generator().manual_seed(seed))
    moved = replace(heads, query=heads.query[:, order], key=heads.key[:, order])
    torch.testing.assert_close(measured(moved), measured(heads))


def test_the_residual_cares_about_the_basis_and_about_lambda():
    """Spans alone are no singular vectors: a turned basis has the overlaps of a kernel SVD and is none."""
    heads = at_kernel_svd(0)
    turn = random_orthogonal(1, 3)
    turned = replace(heads, weight_e=heads.weight_e @ turn, weight_r=heads.weight_r @ turn)
    same_overlaps(measured(heads), measured(turned))
    assert (measured(turned)["ksvd_dual_residual"] > 0.01).all()
    assert (measured(replace(heads, singular=2 * heads.singular))["ksvd_dual_residual"] > 0.3).all()


@given(seeds)
def test_a_planted_kernel_svd_has_overlap_one_and_no_residual(seed):
    found = measured(at_kernel_svd(seed))
    for name in OVERLAPS:
        torch.testing.assert_close(found[name], torch.ones(2, dtype=torch.float64))
    assert (found["ksvd_dual_residual"] < 1e-10).all()
    assert (found["ksvd_objective"].abs() < 1e-10).all()


@pytest.mark.parametrize(("reduction", "factor"), [("mean", 1.0), ("sum", 1 / 15)])
def test_a_planted_kernel_svd_is_a_stationary_point_of_the_objective(reduction, factor):
    """With means over the 15 tokens Λ is N/S; with the paper's sums it is 1/S."""
    heads = at_kernel_svd(0)
    scale = heads.weight_e.abs().max()

    def gradients(singular):
        weights = [weight.clone().requires_grad_() for weight in (heads.weight_e, heads.weight_r)]
        e, r = primal_scores(replace(heads, weight_e=weights[0], weight_r=weights[1]))
        objective = ksvd_objective(ScorePair(e[None], r[None]), singular, *weights, reduction=reduction)
        return torch.autograd.grad(objective.sum(), weights)

    for gradient in gradients(factor * heads.singular):
        assert gradient.abs().max() < 1e-10 * scale
    for gradient in gradients(2 * factor * heads.singular):
        assert gradient.abs().max() > 1e-2 * scale


def test_gaussian_weights_overlap_by_their_share_of_an_even_kernel():
    """Queries that fill their space evenly and F = I: chance is s/p = 1/4, whatever the number of tokens."""
    queries, keys = (random_orthogonal(seed, 8).repeat(300, 6, 1) for seed in (0, 1))
    unit = torch.eye(8, dtype=torch.float64).expand(300, 8, 8)
    nothing = torch.zeros(300, 8, 2, dtype=torch.float64)
    heads = make_primal(queries, keys, unit, nothing, nothing, torch.ones(300, 2, dtype=torch.float64))
    found = measured(reference("gaussian", heads))
    for name in OVERLAPS:
        assert found[name].mean().item() == pytest.approx(2 / 8, abs=0.02)


def test_gaussian_weights_overlap_by_more_where_the_kernel_has_few_directions():
    """Why chance is measured and not computed: weights follow f(X), as the leading singular vectors do."""
    heads = random_primal(0, heads=50)
    uneven = replace(heads, rows=heads.rows * torch.tensor([9.0, 5.0, 3.0, 1.0, 0.3, 0.1], dtype=torch.float64))
    chance = [measured(reference("gaussian", each))[OVERLAPS[0]].mean() for each in (heads, uneven)]
    assert chance[1] > chance[0] + 0.1


def test_gaussian_weights_leave_the_residual_near_one():
    heads = random_primal(0, heads=50)
    found = measured(reference("gaussian", heads))["ksvd_dual_residual"]
    assert found.mean().item() == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("name", ["gaussian", "planted"])
def test_references_keep_the_kernel_and_change_with_the_repeat(name):
    heads = random_primal(0)
    first, again, other = (reference(name, heads, repeat=repeat) for repeat in (0, 0, 1))
    assert torch.equal(first.weight_e, again.weight_e)
    assert not torch.equal(first.weight_e, other.weight_e)
    torch.testing.assert_close(primal_kernel(first).values, primal_kernel(heads).values)


def test_zero_weights_have_objective_zero_and_nothing_else():
    heads = random_primal(0)
    lost = torch.tensor([True, False])[:, None, None]
    zero = replace(heads, weight_e=heads.weight_e.masked_fill(lost, 0), weight_r=heads.weight_r.masked_fill(lost, 0))
    found, before = measured(zero), measured(heads)
    assert found["ksvd_objective"][0] == 0
    for name in (*OVERLAPS, "ksvd_dual_residual"):
        assert found[name][0].isnan()
        torch.testing.assert_close(found[name][1], before[name][1])
    assert why_missing(PrimalInput.of(zero)) == ["E or R is zero, which has no direction", None]


def test_columns_that_depend_on_each_other_span_less():
    heads = at_kernel_svd(0)
    repeated = replace(heads, weight_e=heads.weight_e[..., [0, 0, 1]])
    torch.testing.assert_close(measured(repeated)[OVERLAPS[0]], torch.full((2,), 2 / 3, dtype=torch.float64))


def test_a_kernel_of_too_few_singular_values_is_said_to_have_none_to_compare():
    heads = random_primal(0)
    flat = replace(heads, rows=heads.rows.clone().index_fill_(2, torch.arange(2, 6), 0.0))
    assert measured(flat)[OVERLAPS[0]].isnan().all()
    assert (
        why_missing(PrimalInput.of(flat)) == ["the kernel has only 2 singular values above rounding, fewer than 3"] * 2
    )
    assert reference("planted", flat).weight_e.isnan().all()


def test_more_directions_than_a_head_has_cannot_be_planted():
    heads = random_primal(0, dim=2)
    assert reference("planted", heads) is None
    assert measured(heads)[OVERLAPS[1]].isnan().all()


def test_weights_that_are_not_finite_are_named():
    heads = random_primal(0)
    lost = replace(heads, weight_e=heads.weight_e.clone().index_fill_(0, torch.tensor([1]), torch.inf))
    found, before = measured(lost), measured(heads)
    for name, numbers in found.items():
        assert not numbers[1].isfinite()
        torch.testing.assert_close(numbers[0], before[name][0])
    assert why_missing(PrimalInput.of(lost)) == [None, "queries, keys or weights are not finite"]
