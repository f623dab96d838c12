import pytest
import torch
from hypothesis import given

from attnaudit.kernel import paper, spectrum
from attnaudit.measures.gamma import GAMMA_OF_EIGENVECTORS, gamma_differences, gammas, perturbed
from tests.heads import fixture_heads, random_heads
from tests.measures.case import input_of, seeds


def test_reference_gamma_of_true_eigenvectors():
    single = paper.spectrum(fixture_heads().key)
    double = spectrum(fixture_heads().key)
    assert gammas(double.image(double.eigenvectors), double.eigenvectors)[0, 0, 0].item() == pytest.approx(
        2.8121e-6, rel=2e-5
    )
    assert (
        5e-12
        < gamma_differences(single.image(single.eigenvectors), single.eigenvectors).absolute_mean.mean().item()
        < 5e-11
    )
    assert gamma_differences(double.image(double.eigenvectors), double.eigenvectors).absolute_mean.mean().item() < 1e-19


@given(seeds)
def test_differences_equal_loops_over_pairs(seed):
    result = spectrum(random_heads(seed, heads=1, tokens=7, dim=2).key)
    vectors = perturbed(result.eigenvectors, seed)
    values = gammas(result.image(vectors), vectors)[0]
    ours = gamma_differences(result.image(vectors), vectors)
    for m in range(2):
        pairs = [(values[i, m].item(), values[j, m].item()) for i in range(7) for j in range(i + 1, 7)]
        absolute = torch.tensor([abs(a - b) for a, b in pairs], dtype=torch.float64)
        relative = torch.tensor([abs(a - b) / (max(abs(a), abs(b)) + 1e-10) for a, b in pairs], dtype=torch.float64)
        found = [x[0, m].item() for x in (ours.absolute_mean, ours.absolute_std, ours.relative_mean, ours.relative_std)]
        wanted = [absolute.mean(), absolute.std(), relative.mean(), relative.std()]
        assert found == pytest.approx([x.item() for x in wanted], rel=1e-9)


def test_perturbed_vectors_are_orthonormal_and_far_from_the_true_ones():
    vectors = spectrum(fixture_heads().key).eigenvectors
    noisy = perturbed(vectors, 0)
    torch.testing.assert_close(noisy.mT @ noisy, torch.eye(64, dtype=torch.float64)[None], rtol=0, atol=1e-12)
    # Signal has column norm 1, noise 0.1·√197 = 1.4: the first column keeps a cosine of about 1/√(1 + 1.97) = 0.58.
    assert (vectors[0, :, 0] * noisy[0, :, 0]).sum().abs().item() == pytest.approx(0.58, abs=0.1)
    assert torch.equal(perturbed(vectors, 0), noisy)
    assert not torch.equal(perturbed(vectors, 1), noisy)


def test_perturbed_eigenvectors_stand_out_by_orders_of_magnitude():
    at = input_of(random_heads(0, tokens=40, dim=8))
    numbers = {measure.name: measure.function(at) for measure in GAMMA_OF_EIGENVECTORS}
    assert (numbers["gamma_rel_perturbed"] > 1e6 * numbers["gamma_rel_true"]).all()
