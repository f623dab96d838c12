"""Conditions under which a model is evaluated: clean images or sentences, a corruption, noise, an attack, a check."""

from __future__ import annotations

from collections.abc import Sequence

from attnaudit.errors import UsageError, unknown
from attnaudit.protocol import Protocol
from attnaudit.records.evaluation import Condition, ConditionKind
from attnaudit.robustness.attacks import Norm, attack_named
from attnaudit.robustness.corruptions import CORRUPTIONS, SEVERITIES
from attnaudit.robustness.noises import NOISES

CLEAN = Condition(ConditionKind.CLEAN, "clean")
OUTLIERS = Condition(ConditionKind.OUTLIERS, "outliers")
#: Every image is within 1/2 of plain grey, so a working attack leaves no accuracy.
EVERYTHING = Condition(ConditionKind.CHECK, "everything", 0.5, Norm.MAX.value, 10)
#: A step of a quarter of a grey level along the gradient, and along random signs.
GRADIENT = Condition(ConditionKind.CHECK, "gradient", 0.25 / 255, Norm.MAX.value)
#: Twenty times the default of Square, which takes the most; a larger number is probably a typing error.
MOST_ITERATIONS = 100_000
#: PGD's adversarial images for another model.
TRANSFER = "transfer"


def attack_conditions(names: Sequence[str], epsilons: Sequence[float], protocol: Protocol) -> list[Condition]:
    """Every attack at every ε. A name may include the number of iterations and an ε of its own: `pgd:50@1/255`.

    Raises:
        UsageError: an attack is unknown, or has not what its name says.
    """
    found: list[Condition] = []
    counts: dict[str, str] = {}
    for name in names:
        described, at, own = name.partition("@")
        plain, _, count = described.partition(":")
        if counts.setdefault(plain, count) != count:
            raise UsageError(f"--attacks names {plain} with two numbers of iterations: use two output folders.")
        attack = attack_named(plain, protocol)
        steps = _iterations(name, count, attack.steps) if count else attack.steps
        if at and attack.budget is not None:
            raise UsageError(f"--attacks {name}: {plain} has one ε in this protocol, {attack.budget:g}.")
        asked = (epsilon(own, f"--attacks {name}: the ε"),) if at else epsilons
        budgets = asked if attack.budget is None else (attack.budget,)
        found += [
            Condition(ConditionKind.ATTACK, plain, budget, attack.norm and attack.norm.value, steps)
            for budget in budgets
        ]
    return list(dict.fromkeys(found))  # duplicates count once


def _iterations(name: str, count: str, default: int | None) -> int:
    """The number of iterations after the colon of a name."""
    number = float(count) if count.isdecimal() else 0.0  # a float accepts any number of digits
    if default is None or number < 1:
        raise UsageError(
            f"--attacks {name}: the colon must be followed by a number of iterations, if the attack has any."
        )
    if number > MOST_ITERATIONS:
        raise UsageError(f"--attacks {name:.40}: the number of iterations must be ≤ {MOST_ITERATIONS:,}.")
    return int(number)


def transfer_conditions(
    epsilons: Sequence[float], protocol: Protocol, attacking: Sequence[Condition] = ()
) -> list[Condition]:
    """Transfer attacks from a twin by PGD at every ε.

    Where `attacking` has PGD, the twin's images are made at its ε and in as many steps, so that the two compare.
    """
    steps = dict.fromkeys(epsilons, attack_named("pgd", protocol).steps)
    steps |= {own.strength: own.steps for own in attacking if own.name == "pgd"}
    return [Condition(ConditionKind.ATTACK, TRANSFER, own, Norm.MAX.value, count) for own, count in steps.items()]


def corruption_conditions(names: Sequence[str], severities: Sequence[int]) -> list[Condition]:
    """Every corruption at every severity."""
    for name in names:
        if name not in CORRUPTIONS:
            raise unknown("corruption", name, CORRUPTIONS)
    for severity in severities:
        if severity not in SEVERITIES:
            raise unknown("severity", severity, SEVERITIES)
    found = [Condition(ConditionKind.CORRUPTION, name, float(severity)) for name in names for severity in severities]
    return list(dict.fromkeys(found))


def noise_conditions(names: Sequence[str], rates: Sequence[float]) -> list[Condition]:
    """Every noise at every rate."""
    for name in names:
        if name not in NOISES:
            raise unknown("noise", name, NOISES)
    for rate in rates:
        if not 0 < rate <= 1:
            raise UsageError(f"--rates must be shares of the words, above 0 and up to 1, got {rate:g}.")
    found = [Condition(ConditionKind.NOISE, name, float(rate)) for name in names for rate in rates]
    return list(dict.fromkeys(found))


def epsilon(text: str, whose: str = "--eps") -> float:
    """A number such as 0.03 or a fraction such as 8/255, between 0 and 1; an error says `whose` it is."""
    numerator, _, denominator = text.partition("/")
    try:
        value = float(numerator) / float(denominator or 1)
    except (ValueError, ZeroDivisionError) as error:
        raise UsageError(f"{whose} must be a number such as 4/255 or 0.0157, got {text or 'nothing'}.") from error
    if not 0 <= value <= 1:
        raise UsageError(f"{whose} must be between 0 and 1, as pixel values are, such as 4/255, got {text}.")
    return value
