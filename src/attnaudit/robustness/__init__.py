"""The robustness of classifiers: corruptions, attacks, outliers, and whether the attacks can be trusted."""

from attnaudit.robustness.examples import Examples
from attnaudit.robustness.plan import EvaluationPlan
from attnaudit.robustness.run import Robustness, evaluate
from attnaudit.robustness.unit import EvaluationSettings

__all__ = ["EvaluationPlan", "EvaluationSettings", "Examples", "Robustness", "evaluate"]
