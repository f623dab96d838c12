"""The experiments of the Gaussian laboratory: theory beside measurement, with verdicts, figure and data."""

from attnaudit.api.laboratory.align import align
from attnaudit.api.laboratory.digits import digits
from attnaudit.api.laboratory.experiment import Experiment
from attnaudit.api.laboratory.finite_prompt import finite_prompt
from attnaudit.api.laboratory.in_context import in_context
from attnaudit.api.laboratory.landscape import landscape
from attnaudit.api.laboratory.regularise import regularise

__all__ = ["Experiment", "align", "digits", "finite_prompt", "in_context", "landscape", "regularise"]
