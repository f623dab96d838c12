"""Conditions: what is asked for twice counts once, and what makes no sense or cannot be told apart is refused."""

import pytest

from attnaudit.errors import UsageError
from attnaudit.protocol import Protocol
from attnaudit.records.evaluation import epsilon_text
from attnaudit.robustness.conditions import attack_conditions, corruption_conditions, epsilon


def test_what_is_asked_for_twice_counts_once():
    assert len(attack_conditions(["fgsm", "pgd:3", "fgsm", "pgd:3"], [4 / 255, 4 / 255], Protocol.EXACT)) == 2
    assert len(corruption_conditions(["fog", "fog", "snow"], [1, 1, 3])) == 4


def test_an_attack_with_two_numbers_of_iterations_is_refused():
    with pytest.raises(UsageError, match=r"pgd .*two numbers of iterations"):
        attack_conditions(["pgd:2", "pgd:5"], [4 / 255], Protocol.EXACT)


@pytest.mark.parametrize("text", ["-0.1", "1.5", "300/255"])
def test_a_budget_outside_of_the_cube_is_refused(text):
    with pytest.raises(UsageError, match=f"between 0 and 1.* got {text}"):
        epsilon(text)


@pytest.mark.parametrize("text", ["much", "1/0", ""])
def test_a_budget_that_is_no_number_is_refused(text):
    with pytest.raises(UsageError, match=f"got {text}"):
        epsilon(text)


@pytest.mark.parametrize(("text", "words"), [("4/255", "4/255"), ("0.5/255", "0.5/255"), ("0.3", "0.3"), ("0", "0")])
def test_budgets_are_shown_as_people_write_them(text, words):
    assert epsilon_text(epsilon(text)) == words


def test_iterations_belong_to_attacks_that_have_them():
    assert attack_conditions(["pgd:50"], [0.1], Protocol.EXACT)[0].steps == 50
    for wrong in ("fgsm:3", "pgd:many", "pgd:0"):
        with pytest.raises(UsageError, match=f"--attacks {wrong}: "):
            attack_conditions([wrong], [0.1], Protocol.EXACT)


@pytest.mark.parametrize("count", ["100001", "1000000000", "9" * 5000])
def test_more_iterations_than_ever_end_are_refused(count):
    assert attack_conditions(["square:100000"], [0.1], Protocol.EXACT)[0].steps == 100_000
    with pytest.raises(UsageError, match=r"--attacks pgd:\d+: .* 100,000"):
        attack_conditions([f"pgd:{count}"], [0.1], Protocol.EXACT)


def test_an_attack_may_have_an_epsilon_of_its_own():
    found = attack_conditions(["pgd", "autoattack@1/255", "square:30@2/255"], [0.1, 0.2], Protocol.EXACT)
    assert [(one.name, one.strength, one.steps) for one in found] == [
        ("pgd", 0.1, 20), ("pgd", 0.2, 20), ("autoattack", 1 / 255, 100), ("square", 2 / 255, 30)
    ]  # fmt: skip
    for wrong in ("pgd@", "pgd@much", "pgd@2"):
        with pytest.raises(UsageError, match=f"--attacks {wrong}: the ε must be"):
            attack_conditions([wrong], [0.1], Protocol.EXACT)
    with pytest.raises(UsageError, match=r"--attacks noise@0.1: noise has one ε in this protocol, 0.3"):
        attack_conditions(["noise@0.1"], [0.1], Protocol.PAPER)
