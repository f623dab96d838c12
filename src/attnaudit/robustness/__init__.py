"""How well a classifier holds: corruptions, attacks, outliers, and whether the attacks can be believed."""

from attnaudit.robustness.examples import Examples
from attnaudit.robustness.plan import EvaluationPlan, EvaluationSettings
from attnaudit.robustness.run import Robustness, evaluate

__all__ = ["EvaluationPlan", "EvaluationSettings", "Examples", "Robustness", "evaluate"]
