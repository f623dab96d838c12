"""A PCA-like regulariser speeds the convergence of attention to the leading eigenvector up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnaudit.claims.claim import Claim, Terms
from attnaudit.claims.meanings import RecordKind
from attnaudit.records.trials import Trials
from attnaudit.records.verdict import Finding, Verdict, VerdictWord
from attnaudit.statistics.decisions import decide_gain
from attnaudit.statistics.means import mean_interval

#: The smallest gain of interest in log₁₀ sin²: a tenth of a decade.
SMALLEST_GAIN = 0.1
_SPEED, _END = "speed", "end"


def _judge(trials: Sequence[Trials], terms: Terms) -> list[Verdict]:
    return [_verdict(own, trials, terms.level) for own in trials if own.measure == _SPEED]


def _verdict(own: Trials, trials: Sequence[Trials], level: float) -> Verdict:
    interval = mean_interval(np.array(own.observed), level)
    word, finding = decide_gain(interval, SMALLEST_GAIN)
    if finding is Finding.NO_GAIN and own.planted < SMALLEST_GAIN:
        word, finding = VerdictWord.UNDECIDED, Finding.NOT_IDENTIFIABLE
    end = next((other for other in trials if (other.subject, other.measure) == (own.subject, _END)), None)
    shown = "" if end is None else f"; at the end {np.mean(end.observed):+.2f}"
    reason = f"decades of sin² gained over training: {np.mean(own.observed):+.2f}{_bracket(interval)}{shown}"
    return Verdict(CLAIM.name, own.subject, word, finding, f"{reason}, {len(own.observed)} pairs of runs")


def _bracket(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f" [{interval[0]:+.2f}, {interval[1]:+.2f}]"


CLAIM = Claim(
    name="gaussian-regulariser",
    statement="A PCA-like regulariser makes attention converge to the leading eigenvector faster.",
    citation="a summary of Maulen-Soto & Boyer 2026 by a machine, not the paper: it might accelerate or stabilise",
    formula="min E‖x₁ - T(X)₁‖² + γ E‖x - P_μ x‖², against γ = 0; P_μ projects on μ",
    rule=(
        "The gain is log₁₀ sin²(μ, v₁) without the regulariser less with it, the mean over training of heads from the "
        "same start on the same prompts; Student's t over runs, corrected for skewness, widened for all comparisons. "
        "Supported if the interval lies above 0, refuted if it lies below (a loss), or contains 0 and excludes a tenth "
        "of a decade (no gain). Two controls say what the verdict is worth: isotropic tokens have nothing to find, and "
        "a regulariser that is misled, computed on tokens whose axes are in reverse order, must lose. Where it loses "
        "less than a tenth of a decade, training is too short for a regulariser to matter, and a missing gain leaves "
        "the claim undecided."
    ),
    decided_by=("gain in log₁₀ sin² over training",),
    shown=("gain in log₁₀ sin² at the end",),
    reads=(RecordKind.LABORATORY,),
    needs="its command, which trains the heads",
    command="attnaudit gaussian regularise",
    meanings={
        Finding.SHOWN: "the regulariser gains what is claimed",
        Finding.NO_GAIN: "a gain of a tenth of a decade is excluded",
        Finding.LOSS: "the regulariser slows training down, or misleads it",
        Finding.NOT_IDENTIFIABLE: "not even a misled regulariser changes a tenth of a decade: train for longer",
        Finding.TOO_WIDE: "the interval contains 0 and a gain of a tenth of a decade",
    },
    decide=_judge,
    intervals=lambda trials: sum(own.measure == _SPEED for own in trials),
)
