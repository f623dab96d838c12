"""The reason for a verdict, in numbers: the scores that decide, and how many heads satisfy the claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attnaudit.display import counted
from attnaudit.records.audit_summary import Statistics
from attnaudit.records.verdict import Finding, Score
from attnaudit.statistics.judged_heads import JudgedHeads

#: What shows an impossibility, in words.
_OF_PREFIXES = {
    "prefix_centering_defect": "centring defect of the values over prefixes (0 needed)",
    "prefix_column_agreement": "|cosine| of what half of the tokens and all of them predict (1 needed)",
}


def impossible_heads(scores: Sequence[Score]) -> Mapping[str, int]:
    """How many heads the claim cannot be true of, by theorem."""
    return max((score.impossible for score in scores), key=lambda own: sum(own.values()), default={})


def measured_impossibility(observed: Statistics) -> str:
    """How far causal heads are from what a theorem demands of them, if it was measured."""
    parts = [
        f"{text} {statistic.mean:.2f}"
        for name, text in _OF_PREFIXES.items()
        if (statistic := observed.get(name)) is not None and statistic.mean is not None
    ]
    return "; ".join(parts)


def missing_for(finding: Finding, scores: Sequence[Score], guard: str, least: int) -> str:
    """What an undecided claim lacks, in words; empty for all others."""
    if finding is Finding.NOT_IDENTIFIABLE:
        if any(s.unidentifiable for s in scores) and not any(s.informative for s in scores):
            return f"no head has {guard}"
        if all(s.tolerance == 0 for s in scores):
            return "noise was tried on the first inputs alone, and these have no number: put other inputs first"
        return "no deciding measure tells planted heads from null ones"
    if finding is Finding.NOT_MEASURED:
        if all(s.informative + s.uninformative == 0 for s in scores):
            return "no head has all three numbers: the measure, its null and its ideal"
        worst = max(scores, key=lambda s: s.rejected)
        return f"{worst.rejected:,} of {worst.informative + worst.rejected:,} values of {worst.measure} are missing"
    if finding is Finding.TOO_FEW_INPUTS:
        return f"{counted(max(s.inputs for s in scores), 'independent input')}, and {least} are needed"
    return ""


def reason_for(finding: Finding, scores: Sequence[Score], heads: JudgedHeads, missing: str) -> str:
    """The deciding numbers, or what is missing, and how many heads a theorem excludes."""
    every = "all" if finding is Finding.IMPOSSIBLE else "Another"
    excluded = [
        f"{every} {count:,} heads are excluded by a theorem: {theorem}"
        for theorem, count in impossible_heads(scores).items()
    ]
    if finding is Finding.IMPOSSIBLE:
        return ". ".join(excluded)
    if finding in (Finding.NOT_IDENTIFIABLE, Finding.NOT_MEASURED):
        return ". ".join([missing, *excluded])
    numbers = "; ".join(f"{s.measure} {s.score}" for s in scores if s.score is not None)
    unscored = max((s.unscored for s in scores), default=0)
    silent = f"{counted(unscored, 'head')} {'has' if unscored == 1 else 'have'} no score" if unscored else ""
    parts = (missing, f"{'Scores' if missing else 'scores'}: {numbers}", str(heads), silent, *excluded)
    return ". ".join(part for part in parts if part)
