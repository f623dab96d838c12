"""The best projection of a layer's inputs on what a theory predicts."""

import pytest
import torch

from attnaudit.kernel.best_projection import (
    ProjectionSums,
    leading_projections,
    overlaps,
    refined_projections,
    with_constant,
)

HEADS, TOKENS, WIDTH, DIM = 2, 30, 12, 3


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def orthonormal(x):
    return torch.linalg.qr(x)[0]


@pytest.fixture
def inputs():
    return with_constant(drawn(6, TOKENS, WIDTH))


@pytest.fixture
def unrelated():
    """Spans that have nothing to do with the inputs."""
    return orthonormal(drawn(6, HEADS, TOKENS, DIM, seed=1))


def fitted(inputs, bases):
    return leading_projections([ProjectionSums.of(inputs, bases)], DIM)[0]


def test_a_projection_that_satisfies_the_theory_is_found_and_holds_for_new_inputs(inputs):
    hidden = drawn(HEADS, WIDTH + 1, DIM, seed=2)
    weights = fitted(inputs, orthonormal(inputs[:, None] @ hidden))
    others = with_constant(drawn(3, TOKENS, WIDTH, seed=3))
    torch.testing.assert_close(
        overlaps(weights, others, orthonormal(others[:, None] @ hidden)), torch.ones(3, HEADS, dtype=torch.float64)
    )


def test_no_projection_has_a_larger_ratio_of_sums_than_the_leading_one(inputs, unrelated):
    sums = ProjectionSums.of(inputs, unrelated)

    def ratio(weights):
        return (
            torch.linalg.solve(weights.mT @ sums.inputs @ weights, weights.mT @ sums.predicted @ weights)
            .diagonal(dim1=1, dim2=2)
            .sum(dim=1)
        )

    best = ratio(leading_projections([sums], DIM)[0])
    for seed in range(50):
        assert (ratio(drawn(HEADS, WIDTH + 1, DIM, seed=seed)) < best).all()


def test_another_basis_of_the_inputs_changes_nothing(inputs, unrelated):
    turned = inputs @ drawn(WIDTH + 1, WIDTH + 1, seed=4)
    torch.testing.assert_close(
        overlaps(fitted(turned, unrelated), turned, unrelated), overlaps(fitted(inputs, unrelated), inputs, unrelated)
    )


def test_inputs_with_dependent_columns_are_fitted_too(inputs, unrelated):
    doubled = torch.cat([inputs, inputs], dim=-1)
    torch.testing.assert_close(
        overlaps(fitted(doubled, unrelated), doubled, unrelated), overlaps(fitted(inputs, unrelated), inputs, unrelated)
    )


def test_sums_over_parts_add_up_to_the_sums_over_all(inputs, unrelated):
    whole = ProjectionSums.of(inputs, unrelated)
    parts = ProjectionSums.of(inputs[:2], unrelated[:2]) + ProjectionSums.of(inputs[2:], unrelated[2:])
    torch.testing.assert_close(parts.inputs, whole.inputs)
    torch.testing.assert_close(parts.predicted, whole.predicted)
    assert parts.count == whole.count == 6


def test_refinement_ends_where_no_direction_gains(inputs, unrelated):
    start = fitted(inputs, unrelated)
    (found,) = refined_projections(start[None], inputs[None], unrelated[None], steps=300, tolerance=1e-12)
    assert (overlaps(found, inputs, unrelated).mean(dim=0) > overlaps(start, inputs, unrelated).mean(dim=0)).all()
    point = found.clone().requires_grad_(True)
    (slope,) = torch.autograd.grad(overlaps(point, inputs, unrelated).mean(dim=0).sum(), point)
    assert float(slope.abs().max() * found.norm(dim=1).max()) < 1e-3


def test_refinement_keeps_what_is_already_best(inputs):
    hidden = drawn(HEADS, WIDTH + 1, DIM, seed=2)
    exact = orthonormal(inputs[:, None] @ hidden)
    (found,) = refined_projections(hidden[None], inputs[None], exact[None])
    torch.testing.assert_close(overlaps(found, inputs, exact), torch.ones(6, HEADS, dtype=torch.float64))


def test_groups_and_heads_are_refined_each_by_itself(inputs, unrelated):
    other_inputs, other = inputs.flip(0) * 2 + 1, unrelated.flip(1)
    starts = [fitted(inputs, unrelated), fitted(other_inputs, other)]
    together = refined_projections(
        torch.stack(starts), torch.stack([inputs, other_inputs]), torch.stack([unrelated, other])
    )
    for place, (own, bases) in enumerate([(inputs, unrelated), (other_inputs, other)]):
        for head in range(HEADS):
            one = slice(head, head + 1)
            (alone,) = refined_projections(starts[place][None, one], own[None], bases[None, :, one])
            torch.testing.assert_close(
                overlaps(together[place, one], own, bases[:, one]), overlaps(alone, own, bases[:, one])
            )
