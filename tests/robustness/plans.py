"""Small evaluations of the classifier in `subjects`."""

from attnaudit.protocol import Protocol
from attnaudit.robustness import EvaluationPlan, EvaluationSettings, Examples
from attnaudit.robustness.conditions import CLEAN, attack_conditions
from tests.robustness.subjects import loaded

EPSILON = 4 / 255
ATTACKS = attack_conditions(["noise", "fgsm", "pgd:3"], [EPSILON], Protocol.EXACT)


def plan_of(data, *conditions, models=None, twin=None, limit=None, **settings):
    examples = Examples.drawn(data, limit, 0)
    models = models or (loaded(),)
    return EvaluationPlan(
        tuple(models), examples, (CLEAN, *conditions), EvaluationSettings(**{"batch": 5} | settings), twin
    )
