import pytest
import torch

from attnaudit.kernel import paper, spectrum
from attnaudit.measures.eigenvalues import eigenvalue_bound, eigenvalue_statistics
from tests.heads import fixture_heads, random_heads


@pytest.mark.parametrize("pipeline", [paper.spectrum, spectrum], ids=["float32", "float64"])
def test_reference_statistics(pipeline):
    result = eigenvalue_statistics(pipeline(fixture_heads().key))
    numbers = [result[f"eigenvalue_{s}"].item() for s in ("max", "min", "mean", "median")]
    assert numbers == pytest.approx([5.53984e-4, 1.59173e-4, 2.7002e-4, 2.50315e-4], rel=2e-5)


def test_averaging_over_heads_commutes_with_the_statistics():
    """The study averages rank by rank over heads and then takes max, min, mean and lower median."""
    result = spectrum(random_heads(0, heads=9, tokens=20, dim=6).key)
    ranks = result.eigenvalues.mean(dim=0)
    ours = {name: value.mean().item() for name, value in eigenvalue_statistics(result).items()}
    assert ours["eigenvalue_max"] == pytest.approx(ranks.max().item())
    assert ours["eigenvalue_min"] == pytest.approx(ranks.min().item())
    assert ours["eigenvalue_mean"] == pytest.approx(ranks.mean().item())
    assert ours["eigenvalue_median"] == pytest.approx(torch.median(ranks).item())


def test_standardised_keys_come_close_to_the_bound():
    from attnaudit.kernel import standardised

    ratio = eigenvalue_bound(spectrum(standardised(fixture_heads().key)))["eigenvalue_bound_ratio"].item()
    assert 0.9 < ratio < 1.0
