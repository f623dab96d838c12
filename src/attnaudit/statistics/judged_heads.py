"""What several measures say of every head together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attnaudit.records.verdict import HeadScore, Score


@dataclass(frozen=True)
class JudgedHeads:
    """The heads that every deciding measure has, those that satisfy the claim or are above chance by all of them."""

    all: list[HeadScore]
    satisfying: list[HeadScore]
    above_chance: list[HeadScore]

    @staticmethod
    def of(scores: Sequence[Score]) -> JudgedHeads:
        """The heads of the measures that decide."""
        by_head = [{(own.layer, own.head): own for own in score.heads} for score in scores]
        common = sorted(set.intersection(*map(set, by_head))) if by_head else []
        # A head is as good as the measure that says least of it.
        worst = [min((heads[name] for heads in by_head), key=lambda own: own.score.mean) for name in common]
        return JudgedHeads(
            worst,
            [own for own, name in zip(worst, common, strict=True) if all(heads[name].satisfies for heads in by_head)],
            [
                own
                for own, name in zip(worst, common, strict=True)
                if all(heads[name].above_chance for heads in by_head)
            ],
        )

    def __str__(self) -> str:
        if not self.all:
            return ""
        best = max(self.all, key=lambda own: own.score.mean)
        counts = (
            f"{len(self.satisfying)} of {len(self.all)} heads satisfy it, {len(self.above_chance)} are above chance"
        )
        return f"{counts}; the best is layer {best.layer}, head {best.head}, whose lowest score is {best.score}"
