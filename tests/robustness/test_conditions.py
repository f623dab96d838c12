"""Conditions: what is asked for twice counts once, and what cannot be told apart is refused."""

import pytest

from attnaudit.errors import UsageError
from attnaudit.protocol import Protocol
from attnaudit.robustness.conditions import attack_conditions, corruption_conditions


def test_what_is_asked_for_twice_counts_once():
    assert len(attack_conditions(["fgsm", "pgd:3", "fgsm", "pgd:3"], [4 / 255, 4 / 255], Protocol.EXACT)) == 2
    assert len(corruption_conditions(["fog", "fog", "snow"], [1, 1, 3])) == 4


def test_an_attack_with_two_numbers_of_iterations_is_refused():
    with pytest.raises(UsageError, match="names pgd with two numbers of iterations: run them into two folders"):
        attack_conditions(["pgd:2", "pgd:5"], [4 / 255], Protocol.EXACT)
