"""Claims about heads trained in the Gaussian laboratory: same words, decided on repeated trainings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnaudit.claims.claim import Statement, reason_for
from attnaudit.claims.verdict import THRESHOLD, Verdict, combine, word_of
from attnaudit.gaussian.experiments.findings import Trials
from attnaudit.statistics.intervals import student_interval, widened_level
from attnaudit.statistics.scores import Score, area_under_curve


@dataclass(frozen=True)
class LaboratoryClaim(Statement):
    """A statement about attention trained on known distributions; `command` runs the trainings and judges them."""

    command: str = ""

    @property
    def judged_by(self) -> str:
        """The command that judges it."""
        return self.command

    def verdicts(self, trials: Sequence[Trials], threshold: float = THRESHOLD) -> tuple[list[Verdict], float]:
        """A verdict for each subject, references among them, and the level of every interval (Bonferroni)."""
        deciding = [trial for trial in trials if trial.measure in self.deciding]
        beside = [trial for trial in trials if trial.measure in self.shown]
        level = widened_level(len(deciding))
        verdicts = []
        for subject in dict.fromkeys(trial.subject for trial in deciding):
            scores = tuple(trial_score(trial, level) for trial in deciding if trial.subject == subject)
            word = combine([word_of(score, threshold) for score in scores])
            shown = tuple(trial_score(trial, level) for trial in beside if trial.subject == subject)
            verdicts.append(Verdict(self.name, subject, word, reason_for(word, scores), scores, shown))
        return verdicts, level


def trial_score(trials: Trials, level: float) -> Score:
    """(observed - null)/(planted - null), as for a model's heads; the interval is Student's t over repetitions.

    A handful of trainings is too few for a bootstrap, whose intervals come out too narrow.
    """
    observed, null = np.array(trials.observed), np.array(trials.null)
    base = float(null.mean())
    scores = (observed - base) / (trials.planted - base)
    return Score(
        measure=trials.measure,
        mean=float(scores.mean()),
        interval=student_interval(scores, level),
        auc=area_under_curve(np.array([trials.planted]), null),
        heads=len(scores),
        rejected=0,
        unidentifiable=0,
        observed=float(observed.mean()),
        null=base,
        null_name="chance",
        planted=trials.planted,
    )
