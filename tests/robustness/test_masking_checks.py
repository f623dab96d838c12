"""The checks pass an honest network and catch one whose gradients are hidden."""

import pytest
import torch
from torch import nn

from attnaudit.protocol import Protocol
from attnaudit.robustness import EvaluationPlan, EvaluationSettings, Examples, evaluate
from attnaudit.robustness.conditions import CLEAN, EVERYTHING, GRADIENT, attack_conditions
from attnaudit.robustness.masking_checks import masking_checks
from attnaudit.robustness.outcome import Outcome
from attnaudit.robustness.table import Results, rows
from tests.robustness.subjects import loaded, write_parquet


class Rounded(nn.Module):
    """A network behind a staircase, through which no gradient comes: the defence of many papers."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, images):
        return self.inner(torch.round(images * 64) / 64)


def checks_of(network, tmp_path, *names):
    data = write_parquet(tmp_path / "data.parquet", count=40)
    attacks = attack_conditions(names, [4 / 255, 8 / 255], Protocol.EXACT)
    plan = EvaluationPlan(
        (network,), Examples.drawn(data, None, 0), (CLEAN, *attacks, EVERYTHING, GRADIENT), EvaluationSettings()
    )
    return {check.name: check for check in evaluate(plan, tmp_path / "run").summary.checks}


def test_an_honest_network_passes_every_check(tmp_path):
    found = checks_of(loaded(), tmp_path, "noise", "fgsm", "pgd:10", "square:200", "spsa:3", "autoattack:5")
    not_run = [check.name for check in found.values() if check.passed is None]
    assert not_run == ["images made for the twin are not stronger than its own"]
    assert [check.finding for check in found.values() if check.passed is False] == []


def test_a_network_behind_a_staircase_is_caught(tmp_path):
    found = checks_of(loaded(network=Rounded(loaded().module)), tmp_path, "noise", "fgsm", "pgd:10", "square:200")
    for name in (
        "random squares are not stronger than the gradient",
        "a ball that holds plain grey leaves nothing",
        "the loss rises along the gradient, more than along noise",
    ):
        assert found[name].word == "FAIL", found[name].finding


def outcome(right):
    right = torch.tensor(right)
    return Outcome(right, torch.zeros(len(right)), right.bool())


def judged(**right):
    """Checks on invented results: which images are right after PGD and after another attack, at one ε or several."""
    curves = {name: own if isinstance(own[0], list) else [own] for name, own in right.items()}
    epsilons = [0.1 * (place + 1) for place in range(len(next(iter(curves.values()))))]
    conditions = attack_conditions(list(right), epsilons, Protocol.EXACT)
    groups = {
        ("m", condition): rows("m", Protocol.EXACT, condition, list(range(len(r))), [1] * len(r), outcome(r), 0.0)
        for condition, r in zip(conditions, (r for curve in curves.values() for r in curve), strict=True)
    }
    return {check.name: check for check in masking_checks(Results(groups), "m", conditions)}


def test_one_image_more_is_chance_and_eight_are_not():
    name = "one step is not stronger than many"
    assert judged(pgd=[1, 1, 0, 0] * 4, fgsm=[0, 1, 1, 0] + [1, 1, 0, 0] * 3)[name].passed
    assert not judged(pgd=[1] * 16, fgsm=[0] * 8 + [1] * 8)[name].passed


#: How many images only one of two fools, and the probability that of fair coins as many or more fall so.
SIGN_TESTS = [(0, 9, 1.0), (4, 0, 1 / 16), (5, 0, 1 / 32), (8, 2, 56 / 1024), (9, 1, 11 / 1024), (1, 9, 1023 / 1024)]


@pytest.mark.parametrize(("only_fgsm", "only_pgd", "chance"), SIGN_TESTS)
def test_a_weaker_attack_fools_more_than_chance_lets_it_at_five_percent(only_fgsm, only_pgd, chance):
    pgd = [1] * only_fgsm + [0] * only_pgd + [1, 0]
    fgsm = [0] * only_fgsm + [1] * only_pgd + [1, 0]
    check = judged(pgd=pgd, fgsm=fgsm)["one step is not stronger than many"]
    assert check.passed is (chance >= 0.05)
    assert f"(p = {chance:.2g})" in check.finding


@pytest.mark.parametrize("worst", [0, 1])
def test_the_budget_that_is_worst_for_pgd_decides(worst):
    fgsm = [[1] * 8, [1] * 8]
    fgsm[worst] = [0] * 8
    check = judged(pgd=[[1] * 8, [1] * 8], fgsm=fgsm)["one step is not stronger than many"]
    assert check.passed is False
    assert f"at ε = 0.{worst + 1} (p = 0.0078)" in check.finding  # the worst of two


@pytest.mark.parametrize(("back", "lost", "chance"), SIGN_TESTS)
def test_a_larger_budget_gives_back_no_more_images_than_chance(back, lost, chance):
    before, after = [0] * back + [1] * lost + [1, 0], [1] * back + [0] * lost + [1, 0]
    assert judged(pgd=[before, after])["a larger ε leaves less"].passed is (chance >= 0.05)


@pytest.mark.parametrize(("left", "passed"), [(1, True), (2, False)])
def test_one_image_in_a_hundred_may_be_left_of_everything(left, passed):
    assert of_check(EVERYTHING, [1] * left + [0] * (100 - left)).passed is passed


@pytest.mark.parametrize(("rises", "passed"), [(90, True), (89, False)])
def test_the_loss_rises_along_nine_gradients_of_ten(rises, passed):
    assert of_check(GRADIENT, [1] * rises + [0] * (100 - rises)).passed is passed


def of_check(condition, right):
    """The check that looks at one condition, beside PGD."""
    (pgd,) = attack_conditions(["pgd"], [0.1], Protocol.EXACT)
    groups = {
        ("m", c): rows("m", Protocol.EXACT, c, list(range(100)), [1] * 100, outcome(right), 0.0)
        for c in (pgd, condition)
    }
    return masking_checks(Results(groups), "m", [pgd, condition])[-1]


@pytest.mark.parametrize(("strong", "passed"), [(50, True), (46, True), (44, False), (54, True), (55, False)])
def test_autoattack_may_leave_up_to_five_points_less_and_no_more_than_by_chance(strong, passed):
    found = judged(pgd=[1] * 50 + [0] * 50, autoattack=[1] * strong + [0] * (100 - strong))
    assert found["AutoAttack leaves no more than PGD, and hardly less"].passed is passed


@pytest.mark.parametrize(("only_pgd", "only_autoattack", "chance"), SIGN_TESTS)
def test_autoattack_misses_no_more_of_what_pgd_fools_than_chance_lets_it(only_pgd, only_autoattack, chance):
    rest = [1] * 200
    found = judged(
        pgd=[0] * only_pgd + [1] * only_autoattack + rest, autoattack=[1] * only_pgd + [0] * only_autoattack + rest
    )
    assert found["AutoAttack leaves no more than PGD, and hardly less"].passed is (chance >= 0.05)


#: Six of six coins have p = 1/64: less than 0.05 / 3, and more than 0.05 / 4.
EVEN, FEWER = [1] * 6 + [0] * 6, [0] * 12


@pytest.mark.parametrize(("budgets", "passed"), [(1, False), (3, False), (4, True)])
def test_more_budgets_do_not_make_it_more_probable_that_a_weaker_attack_looks_stronger(budgets, passed):
    check = judged(pgd=[EVEN] * budgets, fgsm=[FEWER] + [EVEN] * (budgets - 1))["one step is not stronger than many"]
    assert check.passed is passed
    assert f"(p = {budgets / 64:.2g})" in check.finding


@pytest.mark.parametrize(("budgets", "passed"), [(1, False), (3, False), (4, True)])
def test_more_budgets_do_not_make_it_more_probable_that_autoattack_misses_what_pgd_fools(budgets, passed):
    found = judged(pgd=[FEWER] + [EVEN] * (budgets - 1), autoattack=[EVEN] * budgets)
    assert found["AutoAttack leaves no more than PGD, and hardly less"].passed is passed


@pytest.mark.parametrize(("budgets", "passed"), [(2, False), (4, False), (5, True)])
def test_more_budgets_do_not_make_it_more_probable_that_a_larger_one_gives_images_back(budgets, passed):
    """They have one pair of neighbours fewer than there are budgets."""
    assert judged(pgd=[FEWER] + [EVEN] * (budgets - 1))["a larger ε leaves less"].passed is passed


def test_of_several_budgets_one_that_fails_is_named():
    """The gap is larger at the first ε, and allowed there."""
    first, second = ([1] * 50 + [0] * 50, [1] * 46 + [0] * 54), ([1] * 20 + [0] * 80, [1] * 23 + [0] * 77)
    many = [[own * 10 for own in pair] for pair in (first, second)]
    (pgd, strong), (pgd_at_second, strong_at_second) = many
    check = judged(pgd=[pgd, pgd_at_second], autoattack=[strong, strong_at_second])[
        "AutoAttack leaves no more than PGD, and hardly less"
    ]
    assert check.passed is False
    assert check.finding == "autoattack leaves 23.0%, pgd 20.0% at ε = 0.2"


def test_without_pgd_there_is_nothing_to_check():
    assert judged(fgsm=[1, 0]) == {}
