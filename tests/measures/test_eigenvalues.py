import pytest
import torch

from attnaudit.kernel import standardised
from attnaudit.measures.eigenvalues import EIGENVALUE_BOUND_RATIO, EIGENVALUES, STANDARDISED_EIGENVALUES
from attnaudit.protocol import Protocol
from tests.heads import fixture_heads, make_heads, random_heads
from tests.measures.case import input_of


def statistics(heads, protocol=Protocol.EXACT, measures=EIGENVALUES):
    at = input_of(heads, protocol=protocol)
    return {measure.name: measure.function(at) for measure in measures}


@pytest.mark.parametrize("protocol", Protocol)
def test_reference_statistics(protocol):
    result = statistics(fixture_heads(), protocol)
    numbers = [result[f"eigenvalue_{s}"].item() for s in ("max", "min", "mean", "median")]
    assert numbers == pytest.approx([5.53984e-4, 1.59173e-4, 2.7002e-4, 2.50315e-4], rel=2e-5)


def test_averaging_over_heads_commutes_with_the_statistics():
    """The study averages rank by rank over heads and then takes max, min, mean and lower median."""
    heads = random_heads(0, heads=9, tokens=20, dim=6)
    ranks = input_of(heads).keys.spectrum.eigenvalues.mean(dim=0)
    ours = {name: value.mean().item() for name, value in statistics(heads).items()}
    assert ours["eigenvalue_max"] == pytest.approx(ranks.max().item())
    assert ours["eigenvalue_min"] == pytest.approx(ranks.min().item())
    assert ours["eigenvalue_mean"] == pytest.approx(ranks.mean().item())
    assert ours["eigenvalue_median"] == pytest.approx(torch.median(ranks).item())


def with_standardised_keys():
    heads = fixture_heads()
    return make_heads(heads.query, standardised(heads.key), heads.value)


def test_standardised_keys_come_close_to_the_bound():
    assert 0.9 < EIGENVALUE_BOUND_RATIO.function(input_of(with_standardised_keys())).item() < 1.0


def test_standardised_eigenvalues_are_those_of_standardised_keys():
    found = statistics(fixture_heads(), measures=STANDARDISED_EIGENVALUES)
    for name, value in statistics(with_standardised_keys()).items():
        torch.testing.assert_close(found[f"standardised_{name}"], value)
