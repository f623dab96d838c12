"""The answer of an audit in one sentence per model, from its first claim."""

from __future__ import annotations

from typing import NamedTuple

from attnaudit import defaults
from attnaudit.display import counted, shortened
from attnaudit.records.audit import AuditRun
from attnaudit.records.audit_summary import ClaimWords
from attnaudit.records.verdict import Finding, Score, Verdict, VerdictWord
from attnaudit.report.verdict_cards import claim_words
from attnaudit.statistics.decisions import decides

#: What a mean over heads that differ is called.
_SCORE = {Finding.IN_SOME_HEADS: "mean score"}
#: What is said of refuted claims beside that no head satisfies them.
_COMPARED = {
    Finding.PARTIAL: ", though the heads are closer to the claim than chance",
    Finding.BELOW_CHANCE: ", and the heads are farther from the claim than chance",
    Finding.UNREALISABLE: ", and no weights on these inputs could come near",
}


class Predicate(NamedTuple):
    """What a claim says of one head, and of several."""

    one: str
    several: str

    @staticmethod
    def of(claim: str, words: ClaimWords) -> Predicate:
        """In the words of the claim, or with its name if it has none; those of older runs are in the registry."""
        if have := words.heads_have or claim_words(claim).heads_have:
            return Predicate(f"has {have}", f"have {have}")
        return Predicate(f"satisfies {claim}", f"satisfy {claim}")


def answers(run: AuditRun) -> dict[str, str]:
    """One sentence for every model of a run."""
    return {model: _answer(run, model) for model in run.models}


def _answer(run: AuditRun, model: str) -> str:
    name, statistics = shortened(model), run.summary.observed(model).values()
    if not any(own.n + own.lost for own in statistics):
        refused = run.summary.capture.refused_layers
        why = f": {counted(len(refused), 'layer')} refused ({refused[0][1]})" if refused else ""
        return f"No head of {name} was captured{why}."
    own = sorted((v for v in run.verdicts if v.model == model), key=lambda verdict: verdict.of_every_network)
    if not own:
        return f"Heads of {name} were measured, and no claim was judged."
    threshold = defaults.THRESHOLD if run.summary.threshold is None else run.summary.threshold
    return answer(own[0], run.summary.claims[own[0].claim], threshold)


def answer(verdict: Verdict, words: ClaimWords, threshold: float = defaults.THRESHOLD) -> str:
    """What a verdict says of its model, in one sentence.

    Args:
        verdict: on a model of an audit.
        words: what the claim says of itself.
        threshold: the score that counts as the claim.
    """
    model, predicate = shortened(verdict.model), Predicate.of(verdict.claim, words)
    if not verdict.scores:  # decided by a rule of its own
        return f"{verdict.claim} is {verdict.words} for {model}: {verdict.reason.removesuffix('.')}."
    if verdict.word is VerdictWord.UNDECIDED:
        return f"It is undecided whether heads of {model} {predicate.several}: {_missing(verdict)}."
    if verdict.finding is Finding.IMPOSSIBLE:
        theorem = next(theorem for score in verdict.scores for theorem in score.impossible)
        every = "it" if verdict.heads == 1 else f"all {verdict.heads:,}"
        return f"No head of {model} can {predicate.several}: a theorem excludes {every}, because {theorem}."
    score = _telling(verdict, threshold)
    numbers = "no score" if score is None else f"{_SCORE.get(verdict.finding, 'score')} {score.score}"
    counts = f"{verdict.satisfying} of {counted(verdict.heads, 'head')}"
    if verdict.word is VerdictWord.SUPPORTED:
        return f"{_supported(verdict, model, predicate)}: {numbers}{_excluded(verdict)}."
    seen = f"is seen to {predicate.several}" if _open_heads(verdict, threshold) else predicate.one
    compared = _COMPARED.get(verdict.finding, "")
    return f"No head of {model} {seen}{compared}: {counts}, {numbers}{_reach(score)}{_excluded(verdict)}."


def _supported(verdict: Verdict, model: str, predicate: Predicate) -> str:
    if verdict.finding is Finding.IN_ALL_HEADS:
        whole = "The only head" if verdict.heads == 1 else f"All {verdict.heads:,} heads"
        return f"{whole} of {model} {predicate.one if verdict.heads == 1 else predicate.several}"
    if verdict.finding is Finding.IN_SOME_HEADS:
        verb = predicate.one if verdict.satisfying == 1 else predicate.several
        return f"{verdict.satisfying:,} of {counted(verdict.heads, 'head')} of {model} {verb}"
    return f"On average the heads of {model} {predicate.several}, though none of {verdict.heads:,} is certain to"


def _missing(verdict: Verdict) -> str:
    """What would decide the claim."""
    if verdict.finding not in (Finding.TOO_WIDE, Finding.MEASURES_DISAGREE):
        return verdict.missing or verdict.reason.removesuffix(".")  # older runs have only the reason
    scores = "; ".join(f"{own.measure} {own.score}" for own in verdict.scores if decides(own))
    disagree = verdict.finding is Finding.MEASURES_DISAGREE
    return f"{'measures disagree' if disagree else 'the interval is too wide'} ({scores}), more inputs narrow it"


def _telling(verdict: Verdict, threshold: float) -> Score | None:
    """The deciding measure to name: where refuted, one whose reach is known, and else the one that says least."""
    found = [own for own in verdict.scores if decides(own)] or [own for own in verdict.scores if own.score is not None]
    least = min(found, key=_mean, default=None)
    if verdict.word is VerdictWord.REFUTED:
        return next((own for own in found if own.reach is not None and _mean(own) < threshold), least)
    return least


def _mean(score: Score) -> float:
    return 0.0 if score.score is None else score.score.mean


def _open_heads(verdict: Verdict, threshold: float) -> bool:
    """Whether there are heads whose intervals do not exclude the claim by any measure."""
    deciding = [own for own in verdict.scores if decides(own)]
    open_by_measure = [
        {(head.layer, head.head) for head in own.heads if head.score.interval and head.score.interval[1] >= threshold}
        for own in deciding
    ]
    return bool(open_by_measure) and bool(set.intersection(*open_by_measure))


def _reach(score: Score | None) -> str:
    """What the best projection scores; nothing where it was fitted to too few inputs to find anything."""
    if score is None or score.reach is None or score.reach.mean <= _mean(score):
        return ""
    return f"; the best value projection could reach {score.reach.mean:.2f}"


def _excluded(verdict: Verdict) -> str:
    """How many heads a theorem excludes, where it does not exclude all."""
    count = max((sum(own.impossible.values()) for own in verdict.scores), default=0)
    return f"; a theorem excludes {count:,} of the heads" if count else ""
