"""Claims about robustness: decided on the folders of `attnaudit robust`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from attnaudit.claims.claim import Statement
from attnaudit.records.evaluated_networks import Evaluation
from attnaudit.records.verdict import Verdict, Word

MEANINGS = {
    Word.SUPPORTED: "every gain that is claimed is there",
    Word.REFUTED: "a gain that is claimed is none, or a loss",
    Word.INDISTINGUISHABLE: "none of the gains that are claimed is one",
    Word.NOT_IDENTIFIABLE: "no gain to explain is shown, or the attack tells nothing apart",
    Word.NOT_MEASURABLE: "what is needed was not evaluated",
    Word.INCONCLUSIVE: "too few seeds, too far apart, or attacks that cannot be believed",
}


def _nothing(evaluations: Sequence[Evaluation]) -> list[Verdict]:
    return []


@dataclass(frozen=True)
class RobustnessClaim(Statement):
    """A statement about how well networks hold; `judge` gives a verdict for each subject that was evaluated."""

    judge: Callable[[Sequence[Evaluation]], list[Verdict]] = field(default=_nothing)
    needs: str = ""

    @property
    def judged_by(self) -> str:
        """The command that judges it."""
        return "attnaudit judge RUN…"
