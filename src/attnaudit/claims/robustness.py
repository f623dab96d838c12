"""Claims about robustness: decided on the folders of `attnaudit robust`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from attnaudit.claims.claim import Statement
from attnaudit.claims.verdict import Verdict
from attnaudit.evidence.robustness_results import Evaluation


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
