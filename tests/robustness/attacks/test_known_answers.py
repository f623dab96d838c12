"""On a linear model the best change of an image is known in closed form, in every norm."""

from dataclasses import replace

import pytest
import torch

from attnaudit.robustness.attacks import spsa as spsa_module
from attnaudit.robustness.attacks.apgd import apgd
from attnaudit.robustness.attacks.cw import smallest
from attnaudit.robustness.attacks.fab import targeted_fab
from attnaudit.robustness.attacks.fgsm import fgsm
from attnaudit.robustness.attacks.norms import Norm, distance
from attnaudit.robustness.attacks.pgd import pgd
from attnaudit.robustness.attacks.problem import Problem
from attnaudit.robustness.attacks.sld import sld
from attnaudit.robustness.attacks.spsa import spsa
from attnaudit.robustness.attacks.square import square
from tests.robustness.problems import SHAPE, generator, learned_problem, left, linear_problem

EPSILON = 0.05


def away(problem):
    """The direction that raises the loss, image by image: -w for label 1, w for label 0."""
    return problem.model.weight.sign() * (1 - 2 * problem.labels.view(-1, 1, 1, 1))


def optimum(problem):
    return problem.images + EPSILON * away(problem)


def loss(problem, images):
    """How far the wrong class is ahead."""
    return problem.model.margin(images) * (1 - 2 * problem.labels)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fgsm_is_the_sign_of_the_weights(dtype):
    problem = linear_problem(dtype)
    assert torch.equal(fgsm(problem, EPSILON), optimum(problem))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_pgd_ends_in_the_corner_of_the_ball(dtype):
    problem = linear_problem(dtype)
    torch.testing.assert_close(pgd(problem, EPSILON), optimum(problem), atol=1e-6, rtol=0)


def test_at_a_bound_the_corner_is_clipped():
    problem = linear_problem()
    problem.images[:, :, :2] = 0.01
    problem.images[:, :, 2:4] = 0.99
    for attack in (fgsm, pgd):
        torch.testing.assert_close(attack(problem, EPSILON), optimum(problem).clamp(0, 1), atol=1e-6, rtol=0)


def test_without_bounds_nothing_is_clipped():
    problem = linear_problem().with_bounds(-torch.inf, torch.inf)
    problem.images[:] = 0.01
    assert fgsm(problem, EPSILON).min() < 0


def test_apgd_ends_in_the_corner_where_the_ball_has_no_adversarial_image():
    problem = linear_problem()
    tiny = 1e-4
    assert left(problem, apgd(problem, tiny, steps=20)) == 1
    expected = loss(problem, problem.images) + tiny * problem.model.weight.abs().sum()
    torch.testing.assert_close(loss(problem, apgd(problem, tiny, steps=20)), expected, atol=1e-4, rtol=0)


class Hill:
    """Class 1 is never ahead, and nearest to it on a hilltop inside the ball, which steps of one size jump over."""

    def __init__(self, top):
        self.top, self.seen = top, []

    def __call__(self, images):
        self.seen.append(images.detach())
        below = (images - self.top).square().flatten(1).mean(dim=1)
        return torch.stack([torch.zeros_like(below), -1000 * below], dim=1)


def hill_problem():
    images = torch.full((4, *SHAPE), 0.5, dtype=torch.float64)
    places = torch.rand(images.shape, generator=generator(5), dtype=torch.float64)
    model = Hill(images + EPSILON * (places - 0.5))
    return Problem(model, images, torch.zeros(4, dtype=torch.int64), generator(2))


def test_apgd_halves_its_step_until_it_stands_on_the_hilltop():
    problem = hill_problem()
    found = distance(apgd(problem, EPSILON, steps=100) - problem.model.top, Norm.MAX)
    # 2ε, halved at each of the eight looks
    assert (found < 2 * EPSILON / 2**8 * 4).all()


def test_apgd_goes_on_from_its_best_iterate_where_it_halves_its_step():
    problem = hill_problem()
    apgd(problem, EPSILON, steps=100)
    look, top = 22, problem.model.top  # the first; what a step of 2ε has jumped over is too far for all images
    seen = torch.stack(problem.model.seen)
    below = (seen - top).square().flatten(2).mean(dim=2)
    best = seen[below[: look + 1].argmin(dim=0), torch.arange(4)]
    ahead = problem.project(best + EPSILON * (top - best).sign(), EPSILON)
    expected = problem.project(best + 0.75 * (ahead - best) + 0.25 * (best - seen[look - 1]), EPSILON)
    torch.testing.assert_close(seen[look + 1], expected)


class Swing:
    """Its loss follows a course of its own, and its gradient turns at every question, so that moves show the step."""

    def __init__(self, course):
        self.course, self.seen = course, []

    def __call__(self, images):
        turn = (-1) ** len(self.seen)
        level = self.course(len(self.seen)) - 9
        self.seen.append(images.detach())
        pull = 1e-6 * turn * (images - images.detach()).flatten(1).sum(dim=1)
        return torch.stack([torch.zeros_like(pull), level + pull], dim=1)


def last_moves(course):
    """How far APGD moves between its last looks, in ε."""
    images = torch.full((2, *SHAPE), 0.5, dtype=torch.float64)
    problem = Problem(Swing(course), images, torch.zeros(2, dtype=torch.int64), generator(2))
    apgd(problem, EPSILON, steps=100)
    seen = torch.stack(problem.model.seen[94:99])
    return seen.diff(dim=0).abs().amax() / EPSILON


def test_apgd_keeps_its_step_while_the_loss_rises():
    assert last_moves(lambda question: question / 100) > 0.8


def test_apgd_halves_its_step_where_the_best_loss_stalls_though_losses_rise():
    assert last_moves(lambda question: question % 10 / 100) < 0.5


def test_adam_of_spsa_moves_by_its_rate_from_the_first_step_on(monkeypatch):
    problem = linear_problem(torch.float64)
    monkeypatch.setattr(spsa_module, "_estimated_gradient", lambda problem, images, samples, probe: away(problem) * 0.3)
    for steps in (1, 2, 5):  # along a gradient that stays the same, Adam without its biases moves by the rate each time
        change = spsa(problem, 0.2, steps=steps, rate=0.01) - problem.images
        torch.testing.assert_close(change, steps * 0.01 * away(problem), atol=1e-6, rtol=0)


def test_spsa_comes_near_the_corner_without_a_gradient():
    problem = linear_problem(count=4)
    gained = loss(problem, spsa(problem, EPSILON, steps=20, samples=256)) - loss(problem, problem.images)
    most = EPSILON * problem.model.weight.abs().sum()
    assert (gained > 0.95 * most).all()
    assert (gained <= most * (1 + 1e-5)).all()


def test_the_gradient_that_spsa_guesses_is_unbiased():
    from attnaudit.robustness.attacks.spsa import _estimated_gradient

    problem = linear_problem(torch.float64, count=2)
    guessed = _estimated_gradient(problem, problem.images, 4096, 0.01)
    true = problem.model.weight * (1 - 2 * problem.labels.view(-1, 1, 1, 1))
    error = (guessed - true).square().mean() / true.square().mean()
    numbers = 3 * 6 * 6
    assert error < 2 * numbers / 4096


def test_square_gains_most_of_what_there_is_to_gain():
    problem = linear_problem()
    tiny = 1e-4
    gained = loss(problem, square(problem, tiny, steps=1000)) - loss(problem, problem.images)
    assert (gained > 0.9 * tiny * problem.model.weight.abs().sum()).all()


def test_cw_finds_the_distance_to_the_plane():
    problem = linear_problem(torch.float64)
    found = (smallest(problem, steps=300) - problem.images).flatten(1).norm(dim=1)
    nearest = problem.model.margin(problem.images).abs() / problem.model.weight.norm()
    assert (found >= nearest * (1 - 1e-6)).all()
    assert (found < nearest * 1.1).all()


def test_fab_finds_the_distance_to_the_plane_in_the_largest_change():
    problem = linear_problem(torch.float64)
    nearest = problem.model.margin(problem.images).abs() / problem.model.weight.abs().sum()
    found = distance(targeted_fab(problem, 1.0, steps=30) - problem.images, Norm.MAX)
    assert (found >= nearest * (1 - 1e-6)).all()
    assert (found < nearest * 1.06).all()
    beyond = targeted_fab(problem, 0.5 * float(nearest.min()), steps=30)
    assert torch.equal(beyond, problem.images)


def test_every_iteration_of_fab_comes_to_the_plane_and_goes_back():
    # the first ends 5 % beyond the plane; back by a tenth, the second starts 5.5 % before it and ends 0.6 % beyond
    problem = linear_problem(torch.float64)
    nearest = problem.model.margin(problem.images).abs() / problem.model.weight.abs().sum()
    for steps, beyond in ((1, 1.0501), (2, 1.006)):
        found = distance(targeted_fab(problem, 1.0, steps=steps) - problem.images, Norm.MAX)
        assert (found > nearest).all()
        assert (found < beyond * nearest).all()


def test_fab_leaves_images_alone_that_are_wrong_already():
    problem = linear_problem(torch.float64)
    wrong = replace(problem, labels=1 - problem.labels)
    assert torch.equal(targeted_fab(wrong, 1.0, steps=3), wrong.images)


def test_sparse_descent_takes_the_heaviest_numbers():
    problem = linear_problem()
    change = sld(problem, 1e-3) - problem.images
    changed = change.abs() > 1e-9
    assert (changed.flatten(1).sum(dim=1) == 1).all()  # a hundredth of 108
    heaviest = problem.model.weight.abs().flatten().argmax()
    assert (change.flatten(1).abs().argmax(dim=1) == heaviest).all()
    total = 1e-3 * torch.tensor(SHAPE).prod()
    torch.testing.assert_close(change.flatten(1).abs().sum(dim=1), total.expand(len(change)), atol=1e-5, rtol=0)


def test_many_steps_are_stronger_than_one_on_a_network():
    problem = learned_problem(64)
    assert left(problem, problem.images) > 0.95
    assert left(problem, pgd(problem, 0.1)) <= left(problem, fgsm(problem, 0.1)) < left(problem, problem.images)
