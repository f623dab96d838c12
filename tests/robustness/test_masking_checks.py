"""The checks pass an honest network and catch one whose gradients are hidden."""

import pytest
import torch
from torch import nn

from attnaudit.protocol import Protocol
from attnaudit.robustness import Examples, Plan, Settings, evaluate
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
    data = write_parquet(tmp_path / "data.parquet", pictures=40)
    attacks = attack_conditions(names, [4 / 255, 8 / 255], Protocol.EXACT)
    plan = Plan((network,), Examples.drawn(data, None, 0), (CLEAN, *attacks, EVERYTHING, GRADIENT), Settings())
    return {check.name: check for check in evaluate(plan, tmp_path / "run").summary.checks}


def test_an_honest_network_passes_every_check(tmp_path):
    found = checks_of(loaded(), tmp_path, "noise", "fgsm", "pgd:10", "square:200", "spsa:3", "autoattack:5")
    not_run = [check.name for check in found.values() if check.passed is None]
    assert not_run == ["pictures made for the twin are not stronger than its own"]
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
    """Checks on invented results: which pictures are right after PGD and after another attack."""
    conditions = attack_conditions(list(right), [0.1], Protocol.EXACT)
    groups = {
        ("m", condition): rows("m", Protocol.EXACT, condition, list(range(len(r))), [1] * len(r), outcome(r), 0.0)
        for condition, r in zip(conditions, right.values(), strict=True)
    }
    return {check.name: check for check in masking_checks(Results(groups), "m", conditions)}


def test_one_picture_more_is_chance_and_eight_are_not():
    name = "one step is not stronger than many"
    assert judged(pgd=[1, 1, 0, 0] * 4, fgsm=[0, 1, 1, 0] + [1, 1, 0, 0] * 3)[name].passed
    assert not judged(pgd=[1] * 16, fgsm=[0] * 8 + [1] * 8)[name].passed


@pytest.mark.parametrize(("strong", "passed"), [(50, True), (46, True), (44, False), (51, False)])
def test_autoattack_may_leave_up_to_five_points_less_and_nothing_more(strong, passed):
    found = judged(pgd=[1] * 50 + [0] * 50, autoattack=[1] * strong + [0] * (100 - strong))
    assert found["AutoAttack leaves no more than PGD, and hardly less"].passed is passed


def test_without_pgd_there_is_nothing_to_check():
    assert judged(fgsm=[1, 0]) == {}
