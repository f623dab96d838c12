"""A published statement, in words and numbers, and how it is decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from attnaudit.claims.meanings import MEANINGS, RecordKind
from attnaudit.claims.reasons import impossible_heads, measured_impossibility, missing_for, reason_for
from attnaudit.errors import UsageError
from attnaudit.measures import REFERENCES, Measure, Reference, measure_named
from attnaudit.measures.references.registry import with_nulls_of
from attnaudit.records.audit import AuditedModel
from attnaudit.records.audit_summary import ClaimWords
from attnaudit.records.grouped_rows import Group
from attnaudit.records.trials import Trials
from attnaudit.records.verdict import Finding, Score, Verdict, VerdictWord
from attnaudit.statistics.decisions import CHANCE, LEAST_INPUTS, THRESHOLD, combine, decide_score, decides
from attnaudit.statistics.intervals import CONFIDENCE
from attnaudit.statistics.judged_heads import JudgedHeads
from attnaudit.statistics.scored_heads import scored_heads
from attnaudit.statistics.scores import Bounds, score_of, trial_score
from attnaudit.theories.base import Theory, guard_of
from attnaudit.theories.registry import PRIMAL_SVD, THEORIES

#: What pages say of measures that a claim shows of an audit.
SHOWN_ON = "scored on the first four inputs, up to the end of a unit of work; what decides, on all"
_COMMANDS = {
    RecordKind.AUDIT: "attnaudit audit MODEL --claims {name}",
    RecordKind.TRAINING: "attnaudit judge RUN… --claims {name}",
    RecordKind.EVALUATION: "attnaudit judge RUN… --claims {name}",
}


@dataclass(frozen=True)
class Terms:
    """What a claim is judged by: the scores that count as the claim and as chance, and the confidence of intervals.

    `own` are measures, theories and references of the user's, which no registry has.
    """

    threshold: float = THRESHOLD
    chance: float = CHANCE
    level: float = CONFIDENCE
    own: tuple[Measure | Theory | Reference, ...] = ()

    def measure(self, name: str) -> Measure:
        """The measure of that name, the user's or ours."""
        own = (entry for entry in self.own if isinstance(entry, Measure) and entry.name == name)
        return next(own, None) or measure_named(name)

    @property
    def references(self) -> Mapping[str, Reference]:
        """All references by name, the user's first."""
        return {**{entry.name: entry for entry in self.own if isinstance(entry, Reference)}, **REFERENCES}

    def references_of(self, theory: str) -> Mapping[str, Reference]:
        """The same with the nulls that a theory names as the only ones."""
        return with_nulls_of(self._theories.get(theory), self.references)

    @property
    def _theories(self) -> Mapping[str, Theory]:
        return {**{entry.name: entry for entry in self.own if isinstance(entry, Theory)}, **THEORIES}

    def guard(self, theory: str) -> str:
        """What a head needs to tell a theory from chance, in words."""
        return PRIMAL_SVD.guard.text if theory == PRIMAL_SVD.name else guard_of(self._theories[theory]).text


@dataclass(frozen=True)
class Claim:
    """One statement of one paper, and how it is decided.

    Without `decide` the common rule applies: each measure in `decided_by` is scored between its references (0: chance,
    1: the claim), and the word follows from the intervals of these scores, of all heads and of each by itself.

    Args:
        name: how commands call it.
        statement: one sentence.
        citation: where it was made.
        heads_have: what heads have if it is true, in the plural, such as "kernel-PCA values"; empty for claims that are
            not about heads.
        formula: the same in mathematics.
        rule: in words, what supports and what refutes it.
        decided_by: the measures that decide, or for a rule of its own what it looks at, in words.
        shown: measures that are shown beside them and do not decide.
        theory: which theory predicts the values that an audit compares.
        reads: what it can be judged on.
        needs: which records it needs, in words.
        command: what judges it.
        limits: what no verdict on it says.
        on_request: whether it must be named to be judged, because what it needs takes long.
        meanings: what findings mean here, where that differs from `MEANINGS`.
        decide: a rule of its own, from all records of its kind to a verdict for each subject.
        intervals: of a rule of its own, how many intervals it decides by; they are widened to hold together.
    """

    name: str
    statement: str
    citation: str
    formula: str
    rule: str
    decided_by: tuple[str, ...]
    shown: tuple[str, ...] = ()
    heads_have: str = ""
    theory: str = "kpca"
    reads: tuple[RecordKind, ...] = (RecordKind.AUDIT,)
    needs: str = "an audit of a model with its references"
    command: str = ""
    limits: str = ""
    on_request: bool = False
    meanings: Mapping[Finding, str] = field(default_factory=dict)
    decide: Callable[[Sequence[Any], Terms], list[Verdict]] | None = None
    intervals: Callable[[Sequence[Any]], int] | None = None

    def __post_init__(self) -> None:
        if not self.decided_by:
            raise UsageError(f"The claim {self.name!r} must say what it is decided by: decided_by is empty.")
        decided_by: Any = self.decided_by  # a single name would be taken letter by letter
        if isinstance(decided_by, str):
            raise UsageError(f"decided_by of the claim {self.name!r} must be a tuple, as in ({decided_by!r},).")
        if not self.reads:
            raise UsageError(f"The claim {self.name!r} must say which records it is judged on: reads is empty.")
        object.__setattr__(self, "meanings", {**MEANINGS[self.reads[0]], **self.meanings})
        object.__setattr__(self, "command", self.command or _COMMANDS[self.reads[0]].format(name=self.name))

    @property
    def words(self) -> ClaimWords:
        """What is stored with a run, for its readers."""
        return ClaimWords(self.statement, self.citation, self.theory, self.limits, self.heads_have)

    def judge(self, records: Sequence[Any], terms: Terms) -> list[Verdict]:
        """A verdict for each subject of the records, which are all of one kind that the claim reads."""
        if self.decide is not None:
            return self.decide(records, terms)
        if RecordKind.LABORATORY in self.reads:
            return self._judge_trials(records, terms)
        return self._judge_heads(records, terms)

    def count_intervals(self, records: Sequence[Any]) -> int:
        """How many intervals decide it on these records."""
        if self.intervals is not None:
            return self.intervals(records)
        if self.decide is not None:
            return 0
        if RecordKind.LABORATORY in self.reads:
            return sum(trials.measure in self.decided_by for trials in records)
        return len(self.decided_by)

    def verdict(self, subject: str, scores: Sequence[Score], shown: Sequence[Score], terms: Terms) -> Verdict:
        """The common rule: what these scores come to, for all heads and for each by itself."""
        least = 2 if RecordKind.LABORATORY in self.reads else LEAST_INPUTS
        word, finding = combine([decide_score(s, terms.threshold, terms.chance, least=least) for s in scores])
        heads = JudgedHeads.of([score for score in scores if decides(score, least)])
        excluded = impossible_heads(scores)
        count = len(heads.all) + sum(excluded.values())
        if heads.satisfying:
            word = VerdictWord.SUPPORTED
            unscored = max(own.unscored for own in scores)
            finding = Finding.IN_SOME_HEADS if unscored or len(heads.satisfying) < count else Finding.IN_ALL_HEADS
        missing = missing_for(finding, scores, terms.guard(self.theory), least)
        reason = reason_for(finding, scores, heads, missing)
        return Verdict(
            self.name,
            subject,
            word,
            finding,
            reason,
            tuple(scores),
            tuple(shown),
            len(heads.satisfying),
            count,
            missing,
        )

    def _judge_heads(self, audits: Sequence[AuditedModel], terms: Terms) -> list[Verdict]:
        def scored(audit: AuditedModel, names: Sequence[str]) -> list[Score]:
            return [score(audit, name, self.theory, terms) for name in names]

        found = []
        for audit in audits:
            verdict = self.verdict(audit.model, scored(audit, self.decided_by), scored(audit, self.shown), terms)
            if verdict.finding is Finding.IMPOSSIBLE and (measured := measured_impossibility(audit.observed)):
                verdict = replace(verdict, reason=f"{verdict.reason}. {measured[0].upper()}{measured[1:]}")
            found.append(verdict)
        return found

    def _judge_trials(self, trials: Sequence[Trials], terms: Terms) -> list[Verdict]:
        def scored(subject: str, names: Sequence[str]) -> list[Score]:
            own = [trial for trial in trials if trial.subject == subject and trial.measure in names]
            return [
                trial_score(t.measure, np.array(t.observed), np.array(t.null), t.planted, level=terms.level)
                for t in own
            ]

        subjects = dict.fromkeys(trial.subject for trial in trials if trial.measure in self.decided_by)
        return [
            self.verdict(subject, scored(subject, self.decided_by), scored(subject, self.shown), terms)
            for subject in subjects
        ]


def score(audit: AuditedModel, measure: str, theory: str = "kpca", terms: Terms | None = None) -> Score:
    """The score of a measure on an audited model."""
    terms = terms or Terms()
    how = partial(scored_heads, measure=terms.measure(measure), references=terms.references_of(theory))
    found = audit.heads.scored(Group(audit.model, theory, measure), how)
    return score_of(found, measure, Bounds(terms.threshold, terms.chance, terms.level))
