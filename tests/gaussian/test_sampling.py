import pytest
import torch

from attnaudit.errors import UsageError
from attnaudit.gaussian import (
    GaussianTokens,
    Kernel,
    attention_overlap,
    bbp_overlap,
    estimate,
    optimum,
    pca_variance,
    pooled_overlap,
    principal_axes,
    sampling_inflation,
    second_moment,
    spiked_scale,
    squared_sine,
    wishart,
)
from tests.gaussian.setting import harmonic, seeded

SIGMA = harmonic(10)


def test_lambda_of_the_harmonic_spectrum():
    assert pca_variance(SIGMA) == pytest.approx(4.369, abs=5e-4)


def test_a15_the_error_of_one_prompt_is_lambda_over_length():
    first, generator, length = principal_axes(SIGMA)[1][:, 0], seeded(6), 1024
    moments = torch.stack([second_moment(GaussianTokens(SIGMA).draw(1, length, generator)[0]) for _ in range(200)])
    tops = torch.linalg.eigh(moments).eigenvectors[..., -1]
    scaled = estimate(squared_sine(tops, first.expand_as(tops)) * length / pca_variance(SIGMA))
    assert 0.85 < scaled.mean < 1.2


@pytest.mark.parametrize(("length", "first", "every"), [(32, 4.06, 8.22), (128, 1.63, 2.57)])
def test_kappa_of_linear_attention(length, first, every):
    best = optimum(Kernel.LINEAR, SIGMA, length, seeded())
    one = sampling_inflation(Kernel.LINEAR, SIGMA, length, best, 20_000, seeded(1))
    all_ = sampling_inflation(Kernel.LINEAR, SIGMA, length, best, 4_000, seeded(2), all_queries=True)
    assert one.mean == pytest.approx(first, rel=0.1)
    assert all_.mean == pytest.approx(every, rel=0.15)


def test_there_is_no_error_of_a_direction_that_does_not_exist():
    with pytest.raises(UsageError, match="eigenvalues are equal"):
        pca_variance(torch.eye(3, dtype=torch.float64))


def test_pca_of_as_many_samples_as_dimensions_finds_half_of_a_spike_of_two():
    dim, generator = 300, seeded(3)
    direction = torch.randn(dim, generator=generator, dtype=torch.float64)
    tasks = [wishart(spiked_scale(direction, 2.0), dim, 1, generator) / dim for _ in range(12)]
    found = sum(pooled_overlap(task, direction) for task in tasks) / len(tasks)
    assert bbp_overlap(2.0, 1.0) == pytest.approx(0.5)
    assert found == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("multiple", [0.5, 3.0, 5.0])
def test_a17_one_task_follows_the_bbp_curve(multiple):
    dim, degrees, generator = 100, 200, seeded(4)
    gamma = dim / degrees
    theta, direction = multiple * gamma**0.5, torch.randn(dim, generator=generator, dtype=torch.float64)
    overlaps = [
        attention_overlap(
            wishart(spiked_scale(direction, theta), degrees, 1, generator) / degrees, direction, generator
        )
        for _ in range(12)
    ]
    mean = sum(overlaps) / 12
    if multiple < 1:
        assert bbp_overlap(theta, gamma) == 0
        assert mean < 0.1
    else:
        assert mean == pytest.approx(bbp_overlap(theta, gamma), abs=0.08)


@pytest.mark.parametrize("degrees", [20, 80])
def test_attention_on_one_task_is_pca_even_with_few_vectors(degrees):
    generator, direction = seeded(9), torch.eye(40, dtype=torch.float64)[0]
    task = wishart(spiked_scale(direction, 2.0), degrees, 1, generator) / degrees
    assert attention_overlap(task, direction, generator) == pytest.approx(pooled_overlap(task, direction), abs=1e-5)


def test_attention_on_several_small_tasks_is_less_than_pooled_pca():
    generator, direction = seeded(10), torch.eye(60, dtype=torch.float64)[0]
    scale = spiked_scale(direction, 2.0)
    pairs = []
    for _ in range(4):
        tasks = wishart(scale, 30, 4, generator) / 30
        pairs.append((attention_overlap(tasks, direction, generator), pooled_overlap(tasks, direction)))
    assert all(attention < pooled for attention, pooled in pairs)
