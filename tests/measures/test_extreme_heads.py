"""What no number is due for is missing with a reason, and what remains is right."""

import math
from dataclasses import replace

import pytest
import torch

from attnaudit.kernel.gram import standardised
from attnaudit.measures.measuring import measure_heads, measure_primal
from attnaudit.measures.references import REFERENCES
from attnaudit.measures.registry import MEASURES
from attnaudit.measures.selection import select
from attnaudit.protocol import Protocol
from attnaudit.theories.base import is_fitted
from attnaudit.theories.registry import THEORIES
from tests.heads import random_heads
from tests.primal_heads import random_primal

TOKENS, DIM = 24, 4
#: Of which heads do not change when all values are multiplied by one number.
FREE_OF_SIZE = ("linear_cka", "kernel_cka", "procrustes", "column_cosine_matched", "value_subspace_overlap")
PARTS = ("query", "key", "value", "output")


def heads(**changes):
    return replace(random_heads(3, tokens=TOKENS, dim=DIM, key_size=1.0), **changes)


def with_entry(name, number):
    """Two heads, of which the first has this number in one place."""
    tensor = getattr(heads(), name).clone()
    tensor.view(2, -1)[0, 0] = number
    return heads(**{name: tensor})


def with_outputs(given):
    return replace(given, output=given.attended(given.value))


def with_factor(name, factor):
    return with_outputs(heads(**{name: getattr(heads(), name) * factor}))


def measured(given, *, protocol=Protocol.EXACT, references=()):
    """Number and reason of every head by theory, reference and measure."""
    selection = select(measures=MEASURES, theories=THEORIES, references=references, protocol=protocol)
    return {
        (part.key.theory, part.key.reference, name): list(zip(values.tolist(), part.problems[name], strict=True))
        for part in measure_heads([given], selection)
        for name, values in part.values.items()
    }


def numbers(given, head=0, **options):
    """The finite numbers of a head by theory, reference and measure."""
    found = {key: heads[head][0] for key, heads in measured(given, **options).items()}
    return {key: number for key, number in found.items() if math.isfinite(number)}


@pytest.mark.parametrize("protocol", Protocol)
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_head_with_keys_that_are_not_finite_has_no_number_at_all(number, protocol):
    found = measured(with_entry("key", number), protocol=protocol, references=REFERENCES)
    assert all(not math.isfinite(both[0][0]) and "not finite" in both[0][1] for both in found.values())


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_broken_head_leaves_its_neighbour_alone(part, number):
    found, healthy = numbers(with_entry(part, number), head=1), numbers(heads(), head=1)
    assert found == pytest.approx(healthy, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("part", ["query", "value", "output"])
def test_what_is_not_finite_takes_away_all_numbers_but_those_of_the_keys(part):
    found = numbers(with_entry(part, math.nan))
    assert found == {key: value for key, value in numbers(heads()).items() if key in found}
    of_keys = {name for name, m in MEASURES.items() if m.scope == "keys" and m.applies_to(heads())}
    assert {name for _, _, name in found} == of_keys


def test_a_negative_scale_is_no_kernel_but_leaves_theories_without_one():
    given = with_outputs(heads(scale=-heads().scale))
    found = measured(given)
    for name in (
        "kernel_rank",
        "eigenvalue_max",
        "subspace_overlap",
        "phi_norm2",
        "projection_error_mae",
        "linear_cka",
    ):
        number, reason = found["kpca", "observed", name][0]
        assert math.isnan(number)
        assert "scale is negative" in reason, name
    for theory in ("ksvd", "pca"):
        assert math.isfinite(found[theory, "observed", "linear_cka"][0][0])


@pytest.mark.parametrize("size", [1e150, 1e154, 2e154, 1e160, 1e300])
def test_standardised_eigenvalues_do_not_depend_on_the_size_of_keys(size):
    names = [name for name in MEASURES if name.startswith("standardised")]
    large, healthy = measured(with_factor("key", size)), measured(heads())
    for name in names:
        key = ("kpca", "observed", name)
        assert [number for number, _ in large[key]] == pytest.approx([number for number, _ in healthy[key]], rel=1e-6)


def test_standardising_ordinary_keys_is_what_the_study_does():
    keys = heads().key
    expected = (keys - keys.mean(dim=-1, keepdim=True)) / (keys.std(dim=-1, keepdim=True) + 1e-8)
    assert torch.equal(standardised(keys), expected)


@pytest.mark.parametrize("size", [1e160, 1e200, 1e300])
def test_keys_whose_kernel_overflows_have_no_rank(size):
    number, reason = measured(with_factor("key", size))["kpca", "observed", "kernel_rank"][0]
    assert math.isnan(number)
    assert "overflows" in reason


@pytest.mark.parametrize("backend", ["dense", "subspace", "matrix-free"])
def test_every_solver_leaves_out_heads_without_a_kernel(backend):
    from attnaudit.kernel import spectrum

    keys = torch.randn(4, 64, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    keys[0] *= 1e160
    keys[1, 3, 2] = torch.nan
    found = spectrum(keys, scale=torch.tensor([0.5, 0.5, -0.5, 0.5], dtype=torch.float64), backend=backend)
    assert found.eigenvalues.isfinite().all(dim=-1).tolist() == [False, False, False, True]
    assert [problem is None for problem in found.problems] == [False, False, False, True]


@pytest.mark.parametrize("size", [1e160, 1e-160, 1e80, 1e-80, 1e-78])
def test_values_of_extreme_size_give_the_same_numbers_or_none(size):
    found, healthy = measured(with_factor("value", size)), measured(heads())
    for theory in (name for name, theory in THEORIES.items() if not is_fitted(theory)):
        for name in FREE_OF_SIZE:
            number = found[theory, "observed", name][0][0]
            assert math.isnan(number) or number == pytest.approx(healthy[theory, "observed", name][0][0], rel=1e-9)


@pytest.mark.parametrize("factor", [0.0, 1e-160])
def test_equal_keys_have_rank_zero_and_no_eigenvectors(factor):
    found = measured(with_factor("key", factor))
    assert found["kpca", "observed", "kernel_rank"][0] == (0.0, None)
    for name in ("subspace_overlap", "eigenvector_residual", "gamma_rel", "gamma_rel_true", "allclose"):
        number, reason = found["kpca", "observed", name][0]
        assert math.isnan(number)
        assert "all equal" in reason


@pytest.mark.parametrize("size", [1e-9, 1e-8, 1e-7])
def test_keys_that_differ_only_by_rounding_have_rank_zero(size):
    keys = torch.ones_like(heads().key) + size * heads().key * torch.finfo(torch.float64).eps
    assert measured(with_outputs(heads(key=keys)))["kpca", "observed", "kernel_rank"][0][0] == 0


def test_a_kernel_that_underflows_does_not_look_like_perfect_agreement():
    number, reason = measured(with_factor("key", 1e3))["kpca", "observed", "gamma_rel"][0]
    assert math.isnan(number)
    assert "underflows" in reason or "components" in reason


@pytest.mark.parametrize("protocol", Protocol)
def test_one_token_has_no_prediction_and_no_comparison_with_one(protocol):
    found = measured(random_heads(0, tokens=1, dim=DIM), protocol=protocol)
    for (_, _, name), both in found.items():
        if MEASURES[name].scope == "prediction":
            assert all(math.isnan(number) and reason for number, reason in both), name


def test_norms_that_overflow_are_not_compared():
    found = measured(with_factor("query", 1e160))["kpca", "observed", "phi_norm2"][0]
    assert not math.isfinite(found[0])
    assert "overflows" in found[1]


@pytest.mark.parametrize(("part", "number"), [("key", math.nan), ("query", math.inf), ("rows", 1e160)])
def test_a_primal_head_that_is_not_finite_has_no_number(part, number):
    given = random_primal(0)
    tensor = getattr(given, part).clone()
    tensor[0] *= number
    selection = select(measures=MEASURES, references=["gaussian"])
    for found in measure_primal(replace(given, **{part: tensor}), selection):
        for name, values in found.values.items():
            assert math.isfinite(values[1]), name
            if name == "kernel_rank" or number != 1e160:
                assert math.isnan(values[0])
                assert found.problems[name][0], name
