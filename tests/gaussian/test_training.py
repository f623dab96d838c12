import pytest
import torch

from attnaudit.errors import NumericalError, UsageError
from attnaudit.gaussian import (
    GaussianTokens,
    HeadOptimiser,
    HeadRecipe,
    Kernel,
    SkewedTokens,
    WishartTokens,
    cosine,
    deflated,
    descend,
    finite_prompt,
    infinite_prompt,
    minimise,
    minimise_on_data,
    optimum,
    principal_axes,
    random_start,
    readout,
    second_moment,
    spiked_scale,
    squared_sine,
    train_on_fresh_losses,
    train_on_fresh_prompts,
)
from tests.gaussian.setting import harmonic, seeded


def starts(sigma, number, seed=0):
    generator = seeded(seed)
    return torch.stack([random_start(sigma, 1, generator) for _ in range(number)])


def sizes(weights, sigma):
    return (weights * (sigma @ weights)).sum(dim=(-2, -1))


def test_a6_descent_on_the_infinite_prompt_finds_v1_from_everywhere():
    sigma = harmonic(20)
    first = principal_axes(sigma)[1][:, 0]
    ends = descend(infinite_prompt(), sigma, starts(sigma, 20), steps=8000, step=1.6).end
    assert float((1 - cosine(ends[..., 0], first.expand(20, -1))).max()) < 1e-6
    assert float((sizes(ends, sigma) - 1).abs().max()) < 1e-6
    maps = sigma @ ends @ ends.mT
    assert float((maps - torch.outer(first, first)).abs().max()) < 1e-5


@pytest.mark.parametrize("dim", [5, 20, 50])
@pytest.mark.parametrize("length", [8, 32, 128, 512])
def test_a7_descent_on_finite_prompts_finds_v1_at_its_size(dim, length):
    sigma, risk = harmonic(dim), finite_prompt(length)
    first = principal_axes(sigma)[1][:, 0]
    end = descend(risk, sigma, starts(sigma, 2), steps=100 * dim + 1000, step=1.6, records=1).end
    assert float(squared_sine(end[..., 0], first.expand(2, -1)).max()) < 2e-8
    predicted = risk.optimal_size(1.0, float(sigma.trace()))
    assert float((sizes(end, sigma) - predicted).abs().max()) < 1e-6


@pytest.mark.parametrize("kernel", list(Kernel))
@pytest.mark.parametrize("length", [8, 32, 128])
def test_a11_training_on_fresh_prompts_finds_v1(kernel, length):
    check_training(kernel, 5, length, 0.999, 0.02, HeadRecipe(prompts=max(64, 2048 // length)))


@pytest.mark.parametrize("kernel", list(Kernel))
def test_a12_training_in_fifty_dimensions_finds_v1(kernel):
    check_training(kernel, 50, 128, 0.997, 0.03, HeadRecipe(prompts=32))


def check_training(kernel, dim, length, alignment, tolerance, recipe):
    sigma, generator = harmonic(dim), seeded(length)
    best = optimum(kernel, sigma, length, generator)
    start = random_start(sigma, 1, generator)
    end = train_on_fresh_prompts(kernel, GaussianTokens(sigma), length, start, generator, recipe).end
    assert float(cosine(end[:, 0], best.point)) > alignment
    assert float(sizes(end, sigma)) == pytest.approx(best.size.mean, abs=tolerance)


@pytest.mark.parametrize("length", [None, 64])
def test_a14_training_over_tasks_finds_the_spike(length):
    generator, n, theta, dim = seeded(3), 20, 2.0, 20
    direction = torch.randn(dim, generator=generator, dtype=torch.float64)
    source = WishartTokens(spiked_scale(direction, theta), n)
    start = random_start(source.scale, 1, generator)
    if length is None:
        risk = infinite_prompt()
        trained = train_on_fresh_losses(
            lambda weights: risk(weights, source.covariances(64, generator)).mean(), start, HeadRecipe()
        )
    else:
        trained = train_on_fresh_prompts(Kernel.LINEAR, source, length, start, generator, HeadRecipe(prompts=128))
    mu = trained.end[:, 0]
    assert float(cosine(mu, direction)) > 0.998
    inner = infinite_prompt() if length is None else finite_prompt(length)
    predicted = n * inner.over_wishart(n).optimal_size(1 + theta, dim + theta) / (1 + theta)
    assert {None: 0.2831, 64: 0.2679}[length] == pytest.approx(predicted, abs=5e-5)
    assert float((mu @ direction / direction.norm()) ** 2) == pytest.approx(predicted, rel=0.02)


def test_a15_one_prompt_is_minimised_by_the_top_eigenvector_of_its_second_moment():
    sigma, generator = harmonic(10), seeded(5)
    for _ in range(5):
        prompt = GaussianTokens(sigma).draw(1, 200, generator)
        end = minimise_on_data(Kernel.LINEAR, prompt, random_start(sigma, 1, generator))
        top = torch.linalg.eigh(second_moment(prompt[0])).eigenvectors[:, -1]
        assert float(1 - cosine(end[:, 0], top)) < 1e-9


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_a16_heads_of_rank_k_reach_what_pca_leaves(rank):
    sigma = harmonic(20)
    risk = infinite_prompt()
    end = minimise(lambda weights: risk(weights, sigma), random_start(sigma, rank, seeded(rank), 0.5 / rank))
    eigenvalues, _ = principal_axes(sigma)
    assert float(risk(end, sigma)) == pytest.approx(float(eigenvalues[rank:].sum()), abs=1e-8)
    torch.testing.assert_close(end.mT @ sigma @ end, torch.eye(rank, dtype=torch.float64), atol=1e-5, rtol=0)


def test_heads_find_a_subspace_and_deflation_separates_its_axes():
    sigma, generator = harmonic(20), seeded(1)
    _, vectors = principal_axes(sigma)
    risk = infinite_prompt()
    together = minimise(lambda weights: risk(weights, sigma), random_start(sigma, 3, generator, 0.2))
    columns = cosine(readout(together, sigma).mT, vectors[:, :3].mT)
    assert float(columns.min()) < 0.99
    basis, _ = torch.linalg.qr(together)
    assert float((vectors[:, :3].mT @ basis).square().sum()) == pytest.approx(3, abs=1e-4)
    rest = sigma
    for i in range(3):
        start = random_start(sigma, 1, generator)
        mu = minimise(lambda weights, own=rest: risk(weights, own), start)[:, 0]
        assert float(cosine(rest @ mu, vectors[:, i])) > 0.9999
        rest = deflated(rest, rest @ mu)


def test_a20_skew_breaks_the_softmax_and_not_linear_attention():
    sigma = harmonic(10)
    first = principal_axes(sigma)[1][:, 0]
    source = SkewedTokens(sigma)
    generator = seeded(2)
    # From v₁ itself, so that leaving it is not a failure to find it.
    start = first[:, None].clone()
    softmax = train_on_fresh_prompts(Kernel.SOFTMAX, source, 256, start, generator, HeadRecipe(steps=300)).end
    linear = train_on_fresh_prompts(Kernel.LINEAR, source, 64, random_start(sigma, 1, generator), generator,
                                    HeadRecipe(prompts=256)).end  # fmt: skip
    assert float(cosine(softmax[:, 0], first)) < 0.8
    assert float(cosine(linear[:, 0], first)) > 0.99


def test_skewed_tokens_have_the_covariance_they_are_given_and_are_skewed():
    sigma = harmonic(4)
    tokens = SkewedTokens(sigma).draw(1, 400_000, seeded())[0]
    torch.testing.assert_close(second_moment(tokens), sigma, atol=0.02, rtol=0)
    along = tokens @ principal_axes(sigma)[1][:, 0]
    assert float((along**3).mean()) == pytest.approx(2, abs=0.2)


def test_training_is_repeated_by_its_seed_and_leaves_the_global_one_alone():
    sigma, recipe = harmonic(4), HeadRecipe(steps=20, prompts=4)
    before = torch.get_rng_state()
    first, second = (
        train_on_fresh_prompts(Kernel.SOFTMAX, GaussianTokens(sigma), 8, starts(sigma, 1)[0], seeded(7), recipe)
        for _ in range(2)
    )
    assert torch.equal(first.end, second.end)
    assert first.steps == second.steps
    assert torch.equal(torch.get_rng_state(), before)


def test_sgd_trains_too():
    sigma = harmonic(4)
    recipe = HeadRecipe(optimiser=HeadOptimiser.SGD, rate=0.2)
    end = train_on_fresh_prompts(Kernel.LINEAR, GaussianTokens(sigma), 32, starts(sigma, 1)[0], seeded(1), recipe).end
    assert float(cosine(end[:, 0], principal_axes(sigma)[1][:, 0])) > 0.999


def test_steps_that_are_too_long_are_reported():
    sigma = harmonic(3)
    with pytest.raises(NumericalError, match="step of 40/H"):
        descend(infinite_prompt(), sigma, 5 * starts(sigma, 1)[0], steps=50, step=40.0)
    recipe = HeadRecipe(steps=50, prompts=4, rate=50.0, optimiser=HeadOptimiser.SGD)
    with pytest.raises(NumericalError, match="rate of 50"):
        train_on_fresh_prompts(Kernel.LINEAR, GaussianTokens(sigma), 8, starts(sigma, 1)[0], seeded(), recipe)
    with pytest.raises(UsageError, match=r"steps .* got 0"):
        HeadRecipe(steps=0)
