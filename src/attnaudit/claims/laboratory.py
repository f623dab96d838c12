"""Claims about heads trained in the Gaussian laboratory: same words, decided on repeated trainings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnaudit.claims.claim import Statement, reason_for
from attnaudit.gaussian.experiments.findings import Trials
from attnaudit.records.verdict import Verdict
from attnaudit.statistics.decisions import THRESHOLD, combined_word, word_of_score
from attnaudit.statistics.intervals import widened_level
from attnaudit.statistics.scores import trial_score


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
            scores = tuple(
                trial_score(trial.measure, np.array(trial.observed), np.array(trial.null), trial.planted, level=level)
                for trial in deciding
                if trial.subject == subject
            )
            word = combined_word([word_of_score(score, threshold) for score in scores])
            shown = tuple(
                trial_score(trial.measure, np.array(trial.observed), np.array(trial.null), trial.planted, level=level)
                for trial in beside
                if trial.subject == subject
            )
            verdicts.append(Verdict(self.name, subject, word, reason_for(word, scores), scores, shown))
        return verdicts, level
