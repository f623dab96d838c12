"""What is done to the images before the model sees them: nothing, a corruption, or an attack."""

from __future__ import annotations

from collections.abc import Sequence

from attnaudit.errors import UsageError
from attnaudit.protocol import Protocol
from attnaudit.records.evaluation import Condition, ConditionKind
from attnaudit.robustness.attacks import Norm, attack_named
from attnaudit.robustness.corruptions import CORRUPTIONS, SEVERITIES

CLEAN = Condition(ConditionKind.CLEAN, "clean")
OUTLIERS = Condition(ConditionKind.OUTLIERS, "outliers")
#: Every image is within 1/2 of plain grey, so nothing can be left to see.
EVERYTHING = Condition(ConditionKind.CHECK, "everything", 0.5, Norm.MAX.value, 10)
#: A quarter of a grey level along the gradient, and along random signs.
GRADIENT = Condition(ConditionKind.CHECK, "gradient", 0.25 / 255, Norm.MAX.value)
#: Twenty times what Square takes by default, and it takes most; a number with more digits is a slip, and never ends.
MOST_ITERATIONS = 100_000
#: Adversarial images of another model, made by PGD.
TRANSFER = "transfer"


def attack_conditions(names: Sequence[str], epsilons: Sequence[float], protocol: Protocol) -> list[Condition]:
    """Every attack at every ε. A name may say how many iterations: `pgd:50`."""
    found: list[Condition] = []
    counts: dict[str, str] = {}
    for name in names:
        plain, _, count = name.partition(":")
        if counts.setdefault(plain, count) != count:
            raise UsageError(f"--attacks names {plain} with two numbers of iterations: run them into two folders.")
        attack = attack_named(plain, protocol)
        steps = _iterations(name, count, attack.steps) if count else attack.steps
        budgets = epsilons if attack.budget is None else (attack.budget,)
        found += [
            Condition(ConditionKind.ATTACK, plain, budget, attack.norm and attack.norm.value, steps)
            for budget in budgets
        ]
    return list(dict.fromkeys(found))  # what is asked for twice counts once


def _iterations(name: str, count: str, default: int | None) -> int:
    """What stands after the colon of a name."""
    number = float(count) if count.isdecimal() else 0.0  # which has room for any number of digits
    if default is None or number < 1:
        raise UsageError(f"--attacks {name}: after the colon stands how many iterations, of an attack that has them.")
    if number > MOST_ITERATIONS:
        raise UsageError(
            f"--attacks {name:.40}: no attack is run for more than {MOST_ITERATIONS:,} iterations, give fewer."
        )
    return int(number)


def transfer_conditions(epsilons: Sequence[float], protocol: Protocol) -> list[Condition]:
    """Transfer from a twin at every ε."""
    steps = attack_named("pgd", protocol).steps
    return [
        Condition(ConditionKind.ATTACK, TRANSFER, epsilon, Norm.MAX.value, steps) for epsilon in dict.fromkeys(epsilons)
    ]


def corruption_conditions(names: Sequence[str], severities: Sequence[int]) -> list[Condition]:
    """Every corruption at every severity."""
    for name in names:
        if name not in CORRUPTIONS:
            raise UsageError(f"There is no corruption {name!r}; there are {', '.join(CORRUPTIONS)}.")
    for severity in severities:
        if severity not in SEVERITIES:
            raise UsageError(f"There is no severity {severity}; there are {', '.join(map(str, SEVERITIES))}.")
    asked = [Condition(ConditionKind.CORRUPTION, name, float(severity)) for name in names for severity in severities]
    return list(dict.fromkeys(asked))


def epsilon(text: str) -> float:
    """A number such as 0.03 or a fraction such as 8/255, between 0 and 1."""
    numerator, _, denominator = text.partition("/")
    try:
        value = float(numerator) / float(denominator or 1)
    except (ValueError, ZeroDivisionError) as error:
        raise UsageError(f"--eps {text} is no number: write 4/255 or 0.0157.") from error
    if not 0 <= value <= 1:
        raise UsageError(f"--eps {text} is not between 0 and 1: pixels are, e.g. 1/255, 4/255 or 8/255.")
    return value
