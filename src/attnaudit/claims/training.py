"""Claims about what training does: decided on the folders of `attnaudit train`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from attnaudit.claims.claim import Statement
from attnaudit.records.training_course import Course, open_course
from attnaudit.records.training_rows import TrainingRun, open_training
from attnaudit.records.verdict import Verdict, Word

#: What the words say of trainings.
MEANINGS = {
    Word.SUPPORTED: "these trainings do what is claimed",
    Word.REFUTED: "they do what the claim excludes",
    Word.INDISTINGUISHABLE: "no better than chance or the reference, where what is claimed would show",
    Word.NOT_IDENTIFIABLE: "these trainings cannot tell the claim from chance",
    Word.NOT_MEASURABLE: "what is needed was not measured",
    Word.INCONCLUSIVE: "too few trainings, or too far apart, to decide",
}


@dataclass(frozen=True)
class Training:
    """One training: how it went, and what its monitor saw."""

    course: Course

    @cached_property
    def watched(self) -> TrainingRun | None:
        """What the monitor saw; None if there was none."""
        inputs = self.course.recipe.get("monitor", {}).get("contexts" if self.course.of_text else "images", 0)
        return open_training(self.course.path) if inputs > 0 else None


def open_trainings(paths: Sequence[Path]) -> list[Training]:
    """The trainings of these folders."""
    return [Training(open_course(path)) for path in paths]


def _nothing(trainings: Sequence[Training]) -> list[Verdict]:
    return []


@dataclass(frozen=True)
class TrainingClaim(Statement):
    """A statement about training; `judge` gives a verdict for each subject that the trainings can say something of."""

    judge: Callable[[Sequence[Training]], list[Verdict]] = field(default=_nothing)
    needs: str = ""

    @property
    def judged_by(self) -> str:
        """The command that judges it."""
        return "attnaudit judge RUN…"
