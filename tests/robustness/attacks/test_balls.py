"""Whatever an attack does, it stays in its ball and among pixels, and never does worse than it has to."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnaudit.errors import UsageError
from attnaudit.protocol import Protocol
from attnaudit.robustness.attacks import Norm, Problem, attack_named, attacks, distance
from attnaudit.robustness.attacks.norms import project_to_mean_ball, project_to_rms_ball
from tests.robustness.problems import SHAPE, Linear, generator, learned_problem, left, linear_problem

EXACT = attacks(Protocol.EXACT)
#: Few iterations: the ball must hold after any number of them.
STEPS = {"autoattack": 2, "square": 20, "spsa": 2, "cw": 5, "apgd": 5, "pgd": 3, "sld": 3}


@settings(max_examples=12)
@pytest.mark.parametrize("name", EXACT)
@given(
    epsilon=st.sampled_from([0.0, 1 / 255, 8 / 255, 0.3, 1.0]) | st.floats(0, 1),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 1000),
)
def test_every_adversarial_image_is_in_the_ball_and_in_the_cube(name, epsilon, dtype, seed):
    model = Linear(dtype, seed)
    images = torch.rand(3, *SHAPE, generator=generator(seed), dtype=torch.float64).to(dtype)
    images[0, :, 0], images[0, :, 1] = 0.0, 1.0
    attack = EXACT[name]
    made = attack(Problem(model, images, torch.tensor([0, 1, 0]), generator(seed)), epsilon, STEPS.get(name))
    assert made.dtype == dtype
    assert made.shape == images.shape
    assert made.min() >= 0
    assert made.max() <= 1
    assert (distance(made - images, attack.norm) <= epsilon + 1e-6).all()


@pytest.mark.parametrize("name", EXACT)
def test_no_budget_changes_nothing(name):
    problem = linear_problem()
    assert torch.equal(EXACT[name](problem, 0.0), problem.images)


@pytest.mark.parametrize("name", EXACT)
def test_the_same_seed_gives_the_same_images(name):
    first, second = (EXACT[name](learned_problem(4), 0.05, STEPS.get(name)) for _ in range(2))
    assert torch.equal(first, second)


@pytest.mark.parametrize("name", [name for name in EXACT if name != "noise"])
def test_a_budget_that_is_large_enough_fools(name):
    problem = learned_problem(16)
    assert left(problem, EXACT[name](problem, 0.3, {"autoattack": 5, "square": 500}.get(name))) <= 0.1


@pytest.mark.parametrize("epsilon", [0.05, 0.07, 0.1])
def test_autoattack_never_leaves_more_than_pgd(epsilon):
    problem = learned_problem(64)
    assert left(problem, EXACT["autoattack"](problem, epsilon, 20)) <= left(problem, EXACT["pgd"](problem, epsilon))


def test_attacks_leave_the_problem_as_it_was():
    problem = learned_problem(4)
    before = problem.images.clone()
    for name, attack in EXACT.items():
        attack(problem, 0.05, STEPS.get(name))
        assert torch.equal(problem.images, before), name


@given(epsilon=st.floats(1e-4, 1), seed=st.integers(0, 1000))
def test_projections_reach_the_ball_and_nothing_nearer_is_in_it(epsilon, seed):
    change = torch.randn(4, *SHAPE, generator=generator(seed), dtype=torch.float64)
    other = torch.randn(4, *SHAPE, generator=generator(seed + 1), dtype=torch.float64)
    for project, norm in ((project_to_mean_ball, Norm.MEAN), (project_to_rms_ball, Norm.RMS)):
        onto, inside = project(change, epsilon), project(other, epsilon)
        assert (distance(onto, norm) <= epsilon + 1e-9).all()
        # the nearest point of a convex set: no other point of the set lies at an acute angle
        assert (((change - onto) * (inside - onto)).flatten(1).sum(dim=1) <= 1e-9).all()
        torch.testing.assert_close(project(onto * 0.99, epsilon), onto * 0.99)


def test_an_unknown_attack_is_answered_with_those_there_are():
    with pytest.raises(UsageError, match=r"^Unknown attack 'bim' \(--protocol exact\)\..*noise, fgsm, pgd"):
        attack_named("bim", Protocol.EXACT)
    with pytest.raises(UsageError, match=r"^Unknown attack 'autoattack' \(--protocol paper\)\..*cw"):
        attack_named("autoattack", Protocol.PAPER)
