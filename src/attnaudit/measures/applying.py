"""Which measures and theories of a selection are computed for which heads."""

from __future__ import annotations

from attnaudit.capture.heads import Heads
from attnaudit.measures.measure import Measure, Scope
from attnaudit.measures.selection import Selection
from attnaudit.theories.base import Theory, impossible


def possible_theories(selection: Selection, heads: Heads) -> list[Theory]:
    """The theories that can be true of these heads."""
    return [theory for theory in selection.predicting if not impossible(theory, heads)]


def measures_of(selection: Selection, theory: Theory, heads: Heads, *, shares_keys: bool = False) -> list[Measure]:
    """Measures of the keys once, of the values for the first theory, of the prediction for all."""
    asked = [measure for measure in selection.measures if measure.applies_to(heads)]
    if theory is not selection.theories[0]:
        return [m for m in asked if m.scope is Scope.PREDICTION and m.every_theory]
    scopes = [Scope.VALUES, Scope.PREDICTION] if shares_keys else [Scope.KEYS, Scope.VALUES, Scope.PREDICTION]
    return [m for m in asked if m.scope in scopes]


def comparing_measures(selection: Selection, theory: Theory, heads: Heads) -> list[Measure]:
    """Measures that say how close values are to a theory, without those that compare all pairs of tokens.

    These take long, decide nothing, and are of interest beside the theory and one draw of the null only.
    """
    measures = measures_of(selection, theory, heads, shares_keys=True)
    return [measure for measure in measures if measure.closer != "neither" and not measure.cost.needs_pairs]


def decides(measure: Measure) -> bool:
    """Whether a claim may be decided by a measure, so that it is needed of every input and every draw of the null."""
    return measure.closer != "neither" and measure.every_reference and not measure.cost.needs_pairs
