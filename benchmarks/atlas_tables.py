"""The tables of docs/results/atlas.md, from the folder of a finished atlas.

    attnaudit atlas --download --limit 12 --out atlas
    python -m benchmarks.atlas_tables atlas

Models by claims, claims by number, theories by field, size and depth, and the heads that stand out. Nothing is computed
again: what the folder has is opened.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import attnaudit
from attnaudit.records.verdict import Rank
from attnaudit.report.atlas import AtlasAudit
from attnaudit.report.atlas.audits import is_baseline, telling_score
from attnaudit.report.atlas.head_scores import HeadRow, head_rows
from attnaudit.report.atlas.page import TALLIED, AtlasPage, MeanCell
from attnaudit.report.progress import duration

#: Models that have a run of their own below the folder.
SUMMARY, SETTINGS = "summary.json", "atlas.json"


def opened(folder: Path) -> attnaudit.Atlas:
    """The atlas of what is finished in a folder."""
    names = [path.parent.name for path in sorted(folder.glob(f"*/{SUMMARY}"))]
    settings = json.loads((folder / SETTINGS).read_text("utf-8"))["identity"]
    return attnaudit.atlas(folder, models=names, limit=settings["limit"], seed=settings["seed"], progress=False)


def markdown(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in lines) + "\n"


def models(audits: Sequence[AtlasAudit]) -> str:
    """What was audited, and what two claims and the best theory came to."""
    names = ("model", "field", "heads", "inputs", "replay error", "took", "kpca-values", "score", "best theory")
    return markdown(names, [_model(audit) for audit in audits])


def _model(audit: AtlasAudit) -> list[object]:
    verdict, error = audit.verdicts.get("kpca-values"), audit.summary.capture.replay_error
    score = None if verdict is None else telling_score(verdict)
    best = next((own for own in audit.ranking.values() if own.place == 1), None)
    return [
        *(audit.entry.name, audit.entry.field, audit.heads, audit.inputs),
        "missing" if error is None else f"{error:.0e}",
        "" if audit.seconds is None else duration(audit.seconds),
        "" if verdict is None else verdict.words,
        "" if score is None else f"{score.score} ({score.measure})",
        "none" if best is None or best.least is None else f"{best.theory} {best.least.score}",
    ]


def claims(page: AtlasPage) -> str:
    """How many models have which verdict."""
    return markdown(
        ("claim", *TALLIED), [[claim, *(count or "" for count in page.tally(claim).values())] for claim in page.claims]
    )


def means(page: AtlasPage, columns: Iterable[str], cells: Callable[[str], Sequence[MeanCell]]) -> str:
    """Mean scores of theories, with how many models or layers each is of."""
    rows = [[theory, *(_cell(own) for own in cells(theory))] for theory in page.theories]
    return markdown(("theory", *columns), rows)


def _cell(own: MeanCell) -> str:
    return "" if own.mean is None else f"{round(own.mean, 2) + 0.0:.2f} ({own.count})"  # and not -0.00


def heads_of_theories(page: AtlasPage) -> str:
    """How many models decide each theory, and how many of their heads it was compared on, explains or fits."""
    ranks = {
        theory: [audit.decided[theory] for audit in page.audits if theory in audit.decided] for theory in page.theories
    }
    rows = [[theory, len(own), *(sum(map(count, own)) for count in _COUNTS.values())] for theory, own in ranks.items()]
    return markdown(("theory", "models", *_COUNTS), rows)


def _satisfied(rank: Rank) -> int:
    """Heads that satisfy a theory by all of its measures."""
    heads = [{(own.layer, own.head) for own in score.heads if own.satisfies} for score in rank.scores]
    return len(set.intersection(*heads)) if heads else 0


_COUNTS: dict[str, Callable[[Rank], int]] = {
    "heads": lambda rank: rank.heads,
    "above chance": lambda rank: rank.above_chance,
    "satisfy it": _satisfied,
}


def standing_out(audits: Sequence[AtlasAudit], number: int) -> str:
    """Heads above chance whose interval begins highest, and those that satisfy a theory, whichever measure decides."""
    ranked = [_least_by_head(audit) for audit in audits]
    found = [row for own in ranked for row in own if row.above_chance and not is_baseline(row.theory)]
    found.sort(key=lambda row: -(row.low if row.low is not None else -1.0))
    names = ("model", "layer", "head", "theory", "score", "satisfies it")
    return markdown(names, [_head(row) for row in found[:number]])


def _least_by_head(audit: AtlasAudit) -> list[HeadRow]:
    """Of the measures by which a theory is ranked, the one that says least of a head."""
    ranked = {(theory, own.measure) for theory, rank in audit.ranking.items() for own in rank.scores}
    least: dict[tuple[int, int, str], HeadRow] = {}
    for row in head_rows(audit):
        place = row.layer, row.head, row.theory
        if (row.theory, row.measure) in ranked and (place not in least or row.score < least[place].score):
            least[place] = row
    return list(least.values())


def _head(row: HeadRow) -> list[object]:
    interval = "" if row.low is None or row.high is None else f" [{row.low:.2f}, {row.high:.2f}]"
    return [row.model, row.layer, row.head, row.theory, f"{row.score:.2f}{interval}", "yes" if row.satisfies else ""]


def main(arguments: argparse.Namespace) -> None:
    atlas = opened(arguments.folder)
    page = AtlasPage(atlas.audits, atlas.failures)
    print(*page.answers, sep="\n", end="\n\n")
    print(models(atlas.audits))
    print(claims(page))
    print(heads_of_theories(page))
    print(means(page, page.fields, page.by_field))
    print(means(page, page.sizes, page.by_size))
    print(means(page, page.depths, page.by_depth))
    print(standing_out(atlas.audits, arguments.heads))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--heads", type=int, default=20, help="that stand out")
    main(parser.parse_args())
