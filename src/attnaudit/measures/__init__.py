"""Numbers per head: how close are the values a model has to those a theory predicts?"""

from attnaudit.measures.evaluation import Evaluation, KeySide
from attnaudit.measures.family import Measure, Scope
from attnaudit.measures.registry import DEFAULT_FAMILIES, FAMILIES, MEASURES, evaluate, measure

__all__ = [
    "DEFAULT_FAMILIES",
    "FAMILIES",
    "MEASURES",
    "Evaluation",
    "KeySide",
    "Measure",
    "Scope",
    "evaluate",
    "measure",
]
