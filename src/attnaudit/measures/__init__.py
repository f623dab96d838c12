"""Numbers per head: how close are the values a model has to those a theory predicts?"""

from attnaudit.measures.evaluation import Numbers, evaluate
from attnaudit.measures.guards import Guard
from attnaudit.measures.measure import Cost, Measure, Scope
from attnaudit.measures.measure_input import MeasureInput
from attnaudit.measures.references import REFERENCES, Reference, ReferenceInput, Role
from attnaudit.measures.registry import DEFAULT_MEASURES, MEASURES, measure_named
from attnaudit.measures.selection import Selection, select

__all__ = [
    "DEFAULT_MEASURES",
    "MEASURES",
    "REFERENCES",
    "Cost",
    "Guard",
    "Measure",
    "MeasureInput",
    "Numbers",
    "Reference",
    "ReferenceInput",
    "Role",
    "Scope",
    "Selection",
    "evaluate",
    "measure_named",
    "select",
]
