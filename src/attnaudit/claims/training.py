"""Claims about what training does: decided on the folders of `attnaudit train`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from attnaudit.claims.claim import Statement
from attnaudit.records.training import TrainingRun
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


def _nothing(trainings: Sequence[TrainingRun]) -> list[Verdict]:
    return []


@dataclass(frozen=True)
class TrainingClaim(Statement):
    """A statement about training; `judge` gives a verdict for each subject that the trainings can say something of."""

    judge: Callable[[Sequence[TrainingRun]], list[Verdict]] = field(default=_nothing)
    needs: str = ""

    @property
    def judged_by(self) -> str:
        """The command that judges it."""
        return "attnaudit judge RUN…"
