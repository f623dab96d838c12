"""Runs as one document: the content of the template and the data of the script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from attnaudit._version import __version__
from attnaudit.display import shortened
from attnaudit.records import json_file
from attnaudit.records.audit import AuditRun
from attnaudit.records.audit_summary import ClaimWords
from attnaudit.records.head_views import read_views
from attnaudit.records.schema import POSSIBLE
from attnaudit.records.verdict import Score, Verdict
from attnaudit.report.page.opened_heads import drawn_views
from attnaudit.report.page.subject import MeasureView, Subject, subject

_NAMES_SHOWN = 5
_DECISIONS = {
    "threshold": "score at which a claim counts as met",
    "chance": "score up to which it counts as chance",
}


@dataclass(frozen=True)
class RunFacts:
    """Settings and versions of a run as (name, value), its certificate, and what was left out."""

    name: str
    protocol: str
    inputs: int
    input_names: str
    replay_error: float | None
    certified: int
    attention: str
    settings: list[tuple[str, str]]
    versions: list[tuple[str, str]]
    refused: list[tuple[str, str]]
    skipped: list[tuple[str, str]]


@dataclass(frozen=True)
class Document:
    """Everything the page shows; `left_out` says what was omitted to keep it small."""

    version: str
    runs: list[RunFacts]
    subjects: list[Subject]
    left_out: str = ""

    def figures(self) -> dict[str, Any]:
        """The data that the script draws; the rest is text in the page."""
        return {
            "subjects": [
                {
                    "label": label,
                    "strips": [asdict(strip) for strip in one.strips],
                    "profiles": [asdict(profile) for profile in one.profiles],
                    "measures": [_drawn(view) for view in one.measures if view.map is not None],
                    "scales": [asdict(scale) for scale in one.scales],
                    "views": drawn_views(one.views),
                }
                for label, one in zip(self.labels, self.subjects, strict=True)
            ],
        }

    @property
    def labels(self) -> list[str]:
        """A name for every subject; with several runs it includes the run."""
        return [one.name if len(self.runs) == 1 else f"{one.name} ({self.runs[one.run].name})" for one in self.subjects]

    @property
    def claims(self) -> list[str]:
        """Every claim that was judged in any run."""
        return list(dict.fromkeys(verdict.claim for one in self.subjects for verdict in one.verdicts))

    @property
    def theorems(self) -> list[Verdict]:
        """What is impossible for every network: said once, whatever the number of models."""
        theorems = (verdict for one in self.subjects for verdict in one.verdicts if verdict.of_every_network)
        return list({verdict.claim: verdict for verdict in theorems}.values())

    @property
    def claim_words(self) -> dict[str, ClaimWords]:
        """What the claims of all runs say."""
        return {name: words for one in self.subjects for name, words in one.claims.items()}

    def verdict(self, one: Subject, claim: str) -> Verdict | None:
        """The verdict on a claim, or None if it was not judged."""
        return next((verdict for verdict in one.verdicts if verdict.claim == claim), None)

    @property
    def compared(self) -> list[tuple[str, str, list[Score | None]]]:
        """(claim, deciding measure, its score for every subject); None if a subject has no score."""
        scores = [
            {(verdict.claim, score.measure): score for verdict in one.verdicts for score in verdict.scores}
            for one in self.subjects
        ]
        keys = dict.fromkeys(key for own in scores for key in own)
        return [(claim, measure, [own.get((claim, measure)) for own in scores]) for claim, measure in keys]

    def without_views(self) -> Document:
        """A smaller document: without the attention maps of heads, if there are any."""
        if not any(one.views for one in self.subjects):
            return self
        left_out = "To keep this page small, it leaves out the attention maps of heads: the page of each run has them."
        return replace(self, subjects=[replace(one, views=[]) for one in self.subjects], left_out=left_out)

    def thinned(self, points: int, maps: str) -> Document:
        """A smaller document: fewer points per strip, and heat maps of `all`, `deciding` or `no` measures."""
        return replace(
            self,
            subjects=[_thinned(one, points, maps) for one in self.subjects],
            left_out=f"{self.left_out} To keep this page small, it shows {points} points per strip and heat maps of "
            f"{maps} measures.".strip(),
        )


def document(runs: Sequence[AuditRun]) -> Document:
    """The document of these runs."""
    subjects = []
    for number, run in enumerate(runs):
        kept = read_views(run.path)
        measured = dict.fromkeys((group.model, group.measure) for group in run.heads.measured())
        for model in run.models:
            names = [measure for label, measure in measured if label == model and measure != POSSIBLE]
            subjects.append(subject(run, number, model, names, kept))
    return Document(__version__, [_facts(run) for run in runs], subjects)


def _facts(run: AuditRun) -> RunFacts:
    settings, summary = run.settings, run.summary
    names = [shortened(name, 60) for name, _ in settings.identity.inputs]
    more = f" and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
    levels = [f"{claim} {level:.2%}" for claim, level in summary.levels.items()] or None
    decisions = [(words, getattr(summary, name)) for name, words in _DECISIONS.items()]
    decisions.append(("confidence of intervals", levels))
    return RunFacts(
        name=shortened(run.name),
        protocol=run.protocol,
        inputs=len(names),
        input_names=", ".join(names[:_NAMES_SHOWN]) + more,
        replay_error=summary.capture.replay_error,
        certified=len(settings.certificates),
        attention=shortened("; ".join(settings.kinds_of_attention), 400),
        settings=[(name, _plain(value)) for name, value in json_file.plain(settings.identity.settings).items()]
        + [(words, _plain(value)) for words, value in decisions if value is not None],
        versions=[("attnaudit", settings.attnaudit), *settings.versions.items()],
        refused=_pairs(summary.capture.refused_layers),
        skipped=_pairs(summary.skipped_inputs),
    )


def _plain(value: Any) -> str:
    return shortened(", ".join(map(str, value)) if isinstance(value, list) else str(value), 2000)


def _pairs(pairs: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    """The first pairs (name, reason), and the number of the others."""
    kept = [(shortened(name), shortened(reason)) for name, reason in pairs[:20]]
    return kept + ([(f"{len(pairs) - 20:,} more", "see summary.json")] if len(pairs) > 20 else [])


def _drawn(view: MeasureView) -> dict[str, Any]:
    content = asdict(view)
    del content["statistic"]
    return content


def _thinned(one: Subject, points: int, maps: str) -> Subject:
    def kept(view: MeasureView) -> MeasureView:
        stays = maps == "all" or (maps == "deciding" and view.decides)
        return view if stays else replace(view, map=None)

    strips = [
        replace(strip, rows=[replace(row, points=_every(row.points, points)) for row in strip.rows])
        for strip in one.strips
    ]
    return replace(one, strips=strips, measures=[kept(view) for view in one.measures])


def _every(points: list[float], number: int) -> list[float]:
    step = max(1, -(-len(points) // number))
    return points[::step]
