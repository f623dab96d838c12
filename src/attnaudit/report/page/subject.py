"""Everything the page shows about one model of one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from attnaudit import defaults
from attnaudit.display import shortened, without_folders
from attnaudit.papers.tables import TABLES, Comparison, compare
from attnaudit.records.audit import AuditRun
from attnaudit.records.audit_summary import ClaimWords, MeasureWords, Statistic, Statistics
from attnaudit.records.grouped_rows import Group
from attnaudit.records.head_views import InputView
from attnaudit.records.measured_heads import HeadMeans, LayerQuartiles
from attnaudit.records.verdict import Rank, Score, Verdict
from attnaudit.report.answers import answers
from attnaudit.report.page.maps import HeadMap, head_map
from attnaudit.report.page.opened_heads import HeadScale, head_scales
from attnaudit.report.page.profiles import PROFILED, Profile, profiles
from attnaudit.report.page.strips import Strip, strip
from attnaudit.report.references import MEASURES
from attnaudit.report.theory_map import theory_map
from attnaudit.report.verdict_cards import independent_inputs, null_words
from attnaudit.statistics.decisions import decides

#: The most reasons shown; evidence may have any number of them.
_REASONS = 12
_FIRST_THEORY = "kpca"
_NO_WORDS = MeasureWords("", "neither", None)


@dataclass(frozen=True)
class MeasureView:
    """One measure for one theory on the observed heads; `decides` if a verdict depends on it."""

    name: str
    theory: str
    text: str
    closer: str
    ideal: float | None
    decides: bool
    statistic: Statistic
    map: HeadMap | None


@dataclass(frozen=True)
class TheoryMap:
    """Scores by theory and layer, None at chance; and how many heads are closest to which theory, if to any."""

    layers: list[int]
    rows: list[tuple[str, list[float | None]]]
    winners: list[tuple[str | None, int]]

    @property
    def is_empty(self) -> bool:
        """Whether every theory is at chance everywhere."""
        return all(cell is None for _, cells in self.rows for cell in cells)


@dataclass(frozen=True)
class Subject:
    """One model of one run, and the answer in a sentence.

    `run` is the number of the run in the document, `independent` how many inputs count if those that belong together
    count as one, `null` what score 0 is, `threshold` the score that counts as the claim. Strips and maps without any
    number are left out. `scales` and `views` are for heads that are opened.
    """

    name: str
    answer: str
    run: int
    protocol: str
    weights: str
    inputs: int
    independent: int
    heads: int
    verdicts: list[Verdict]
    null: str
    threshold: float
    claims: Mapping[str, ClaimWords]
    ranking: list[Rank]
    theories: TheoryMap
    strips: list[Strip]
    measures: list[MeasureView]
    profiles: list[Profile]
    published: list[tuple[str, list[Comparison]]]
    rejected: list[tuple[str, int, int]]
    scales: list[HeadScale]
    views: list[InputView]

    @property
    def has_reach(self) -> bool:
        """Whether any gauge shows what the best projection scores."""
        scores = [own for verdict in self.verdicts for own in verdict.scores if own.score is not None]
        return any(own.reach is not None and own.score and own.reach.mean > own.score.mean for own in scores)


def subject(run: AuditRun, number: int, model: str, names: Sequence[str], kept: Sequence[InputView] = ()) -> Subject:
    """Read the evidence of one model for the named measures, one at a time; `kept` are all views of the run."""
    verdicts = [verdict for verdict in run.verdicts if verdict.model == model]
    deciding = _deciding(verdicts, run.summary.claims) or {
        (name, _FIRST_THEORY): None for name in MEASURES if name in names
    }
    views: list[MeasureView] = []
    depths: dict[str, LayerQuartiles] = {}
    inputs = 0
    heads: set[tuple[int, int]] = set()
    measured = [group for group in run.heads.measured() if group.model == model]
    for group in (group for name in names for group in measured if group.measure == name):
        found = run.heads.means(group)
        if not len(found.heads):
            continue
        inputs = max(inputs, found.inputs)
        heads.update(zip(found.layers.tolist(), found.heads.tolist(), strict=True))
        name, theory = group.measure, group.theory
        statistic = run.statistic(model, name, theory)
        words = run.summary.measures.get(name, _NO_WORDS)
        views.append(_view(name, theory, words, found, statistic, (name, theory) in deciding))
        if name in PROFILED and name not in depths:
            depths[name] = run.heads.layer_quartiles(group)
    return Subject(
        name=shortened(model),
        answer=answers(run)[model],
        run=number,
        protocol=run.protocol,
        weights=shortened(without_folders(run.settings.weights.get(model, "unknown"))),
        inputs=inputs,
        independent=independent_inputs(verdicts),
        heads=len(heads),
        verdicts=verdicts,
        null=null_words(verdicts, run.summary.references),
        threshold=defaults.THRESHOLD if run.summary.threshold is None else run.summary.threshold,
        claims=run.summary.claims,
        ranking=[entry for entry in run.ranking if entry.model == model],
        theories=_theories(run, model),
        strips=[own for own in _strips(run, model, deciding) if not own.is_empty],
        measures=views,
        profiles=profiles(depths),
        published=_published(model, run.summary.observed(model)),
        rejected=_rejected(views),
        scales=head_scales(run.heads, model, deciding, run.summary.references),
        views=[view for view in kept if view.model == model],
    )


def _strips(run: AuditRun, model: str, deciding: Mapping[tuple[str, str], Score | None]) -> Iterator[Strip]:
    for (measure, theory), score in deciding.items():
        words = run.summary.measures.get(measure, _NO_WORDS)
        decided = score is None or decides(score)
        yield strip(run.heads, Group(model, theory, measure), decided, words, run.summary.references)


def _theories(run: AuditRun, model: str) -> TheoryMap:
    ranks = [entry for entry in run.ranking if entry.model == model]
    theories, layers, cells = theory_map(ranks, defaults.CHANCE if run.summary.chance is None else run.summary.chance)
    winners = Counter(own.theory for own in run.best_theories if own.model == model)
    return TheoryMap(layers, list(zip(theories, cells, strict=True)), winners.most_common())


def _deciding(verdicts: Sequence[Verdict], claims: Mapping[str, ClaimWords]) -> dict[tuple[str, str], Score | None]:
    """Every score a verdict rests on, by (measure, theory), those that decide nothing last."""
    scores: dict[tuple[str, str], Score | None] = {
        (score.measure, claims[verdict.claim].theory): score
        for verdict in verdicts
        for score in verdict.scores
        if score.score is not None or not score.impossible
    }
    return dict(sorted(scores.items(), key=lambda entry: entry[1] is not None and not decides(entry[1])))


def _view(
    name: str, theory: str, words: MeasureWords, found: HeadMeans, statistic: Statistic, decides: bool
) -> MeasureView:
    drawn = head_map(found)
    return MeasureView(
        shortened(name),
        theory,
        shortened(words.text),
        words.closer,
        words.ideal,
        decides,
        statistic,
        None if drawn.is_empty else drawn,
    )


def _published(model: str, observed: Statistics) -> list[tuple[str, list[Comparison]]]:
    """Our row and the published one, for each table of the study with this model for which all measures exist."""
    found = []
    for table in TABLES.values():
        if all(column.measure in observed for column in table.columns):
            comparisons = [entry for entry in compare(table, model, observed) if entry.published is not None]
            if comparisons:
                found.append((table.caption, comparisons))
    return found


def _rejected(views: list[MeasureView]) -> list[tuple[str, int, int]]:
    """(reason, largest number of values rejected in one measure, number of measures), largest first."""
    losses: dict[str, tuple[int, int]] = {}
    for view in views:
        for reason, count in view.statistic.rejected.items():
            most, number = losses.get(reason, (0, 0))
            losses[reason] = (max(most, count), number + 1)
    ordered = sorted(losses.items(), key=lambda loss: -loss[1][0])
    kept = [(shortened(reason), *numbers) for reason, numbers in ordered[:_REASONS]]
    rest = ordered[_REASONS:]
    if rest:
        most, number = max(n for _, (n, _) in rest), max(n for _, (_, n) in rest)
        kept.append((f"{len(rest):,} other reasons", most, number))
    return kept
