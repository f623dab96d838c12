"""The same attacks in foolbox and pyautoattack, on the same network and images."""

import pytest
import torch

from attnaudit.protocol import Protocol
from attnaudit.robustness.attacks import attacks
from attnaudit.robustness.attacks.apgd import apgd
from attnaudit.robustness.attacks.cw import smallest
from tests.robustness.problems import learned, learned_problem, left

foolbox = pytest.importorskip("foolbox")
pyautoattack = pytest.importorskip("pyautoattack")
EXACT = attacks(Protocol.EXACT)
EPSILONS = (0.05, 0.07, 0.1)


@pytest.fixture(scope="module")
def theirs():
    return foolbox.PyTorchModel(learned(), bounds=(0, 1), device="cpu")


def by_foolbox(attack, model, problem, epsilon):
    return attack(model, problem.images, problem.labels, epsilons=epsilon)[1]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_fgsm_is_foolboxs(theirs, epsilon):
    problem = learned_problem(64)
    expected = by_foolbox(foolbox.attacks.LinfFastGradientAttack(), theirs, problem, epsilon)
    torch.testing.assert_close(EXACT["fgsm"](problem, epsilon), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_pgd_is_as_strong_as_foolboxs(theirs, epsilon):
    problem = learned_problem(64)
    attack = foolbox.attacks.LinfPGD(rel_stepsize=2.5 / 20, steps=20, random_start=False)
    expected = left(problem, by_foolbox(attack, theirs, problem, epsilon))
    assert left(problem, EXACT["pgd"](problem, epsilon)) == pytest.approx(expected, abs=2 / 64)


def test_sparse_descent_is_as_strong_as_foolboxs(theirs):
    problem = learned_problem(64)
    for epsilon in (0.01, 0.02, 0.03):
        attack = foolbox.attacks.SparseL1DescentAttack(quantile=0.99, rel_stepsize=0.1, steps=20, random_start=False)
        expected = left(problem, by_foolbox(attack, theirs, problem, epsilon * problem.size))
        assert left(problem, EXACT["sld"](problem, epsilon)) <= expected + 2 / 64


def test_cw_finds_changes_as_small_as_foolboxs(theirs):
    problem = learned_problem(16)
    attack = foolbox.attacks.L2CarliniWagnerAttack(binary_search_steps=5, steps=200, stepsize=0.01, initial_const=0.01)
    expected = by_foolbox(attack, theirs, problem, None)
    ours = smallest(problem, steps=200)
    assert left(problem, ours) == 0
    lengths = [(made - problem.images).flatten(1).norm(dim=1).median() for made in (ours, expected)]
    assert lengths[0] <= lengths[1] * 1.05


def by_pyautoattack(names, problem, epsilon):
    attack = pyautoattack.AutoAttack(learned(), attacks=names, eps=epsilon, version="custom", seed=0)
    attack.apgd.n_restarts = attack.fab.n_restarts = 1
    attack.apgd.n_iter = attack.apgd_targeted.n_iter = attack.fab.n_iter = 20
    attack.apgd_targeted.n_target_classes = attack.fab.n_target_classes = 3
    attack.square.n_queries = 1_000
    made = attack.run_standard_evaluation(problem.images, problem.labels, batch_size=64)
    return left(problem, made[0] if isinstance(made, tuple) else made)


def test_apgd_is_as_strong_as_pyautoattacks():
    problem = learned_problem(64)
    for epsilon in EPSILONS:
        expected = by_pyautoattack(["apgd-ce"], problem, epsilon)
        assert left(problem, EXACT["apgd"](problem, epsilon, 20)) == pytest.approx(expected, abs=2 / 64)


def test_square_is_at_least_as_strong_as_pyautoattacks():
    # whose squares lie at the same place in all images of a batch, and never at the last row and column
    problem = learned_problem(64)
    for epsilon in EPSILONS:
        assert left(problem, EXACT["square"](problem, epsilon, 1_000)) <= by_pyautoattack(["square"], problem, epsilon)


def test_fab_is_as_strong_as_pyautoattacks():
    from attnaudit.robustness.attacks.fab import targeted_fab

    problem = learned_problem(64)
    for epsilon in EPSILONS:
        expected = by_pyautoattack(["fab-t"], problem, epsilon)
        assert left(problem, targeted_fab(problem, epsilon, steps=20)) == pytest.approx(expected, abs=2 / 64)


def test_autoattack_leaves_what_pyautoattack_leaves():
    problem = learned_problem(64)
    for epsilon in EPSILONS:
        expected = by_pyautoattack(["apgd-ce", "apgd-t", "fab-t", "square"], problem, epsilon)
        assert left(problem, EXACT["autoattack"](problem, epsilon, 20)) == pytest.approx(expected, abs=1 / 64)


def test_the_steps_at_which_apgd_looks_are_the_papers():
    from attnaudit.robustness.attacks.apgd import _checkpoints

    # Croce & Hein (2020), section 3.2, of 100 iterations
    assert sorted(_checkpoints(100)) == [22, 41, 57, 70, 80, 87, 93, 99]
    assert apgd(learned_problem(2), 0.05, steps=1).shape == (2, 3, 8, 8)
