"""What the rows of a step come to: a few numbers per batch, and one line of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from attnaudit.measures import measure_named
from attnaudit.records.evidence import Evidence
from attnaudit.records.head_table import head_table
from attnaudit.records.schema import OBSERVED
from attnaudit.records.verdict import Score
from attnaudit.statistics.intervals import CONFIDENCE
from attnaudit.statistics.scores import head_score
from attnaudit.theories.registry import PRIMAL_SVD

#: Every measure that decides a claim about kernel PCA; the first stands in the line.
ALIGNMENT = (
    "column_cosine_matched",
    "subspace_overlap",
    "procrustes",
    "eigenvector_residual",
    "centering_defect",
    "projection_error_matched",
    "projection_error_rotated",
)
#: The same for Primal-Attention, where there is any: are E and R singular vectors?
SINGULAR = ("ksvd_left_overlap", "ksvd_right_overlap", "ksvd_dual_residual")

_ROUNDING = 1e-6


@dataclass(frozen=True)
class BatchReading:
    """One batch at one step.

    `means` has the mean over layers and heads of every measure of the whole batch. `explained` is the share of ‖φ(q)‖²
    that kernel PCA itself explains, 1 - floor/‖φ(q)‖², and `scores` says where the heads lie between chance (0) and the
    theory (1); both come from the first inputs of the batch and are missing where none is scored.
    """

    name: str
    means: Mapping[str, float | None]
    explained: float | None
    scores: Mapping[str, Score]

    @property
    def line(self) -> str:
        """Projection error, norms, what is explained, alignment; how far Primal-Attention finds singular vectors."""
        parts = [
            f"J {_number(self.means['projection_error_mae'])}",
            f"‖φ‖² {_number(self.means['phi_norm2_median'])} (median)",
            f"‖h‖² {_number(self.means['output_norm2'])}",
        ]
        if self.explained is not None:
            parts.append(f"kernel PCA explains {self.explained:.0%}")
        if self.scores:
            parts.append(f"alignment {_verdict(self.scores[ALIGNMENT[0]])}")
        if SINGULAR[0] in self.scores:
            left, right, _ = (self.scores[name] for name in SINGULAR)
            parts.append(f"singular vectors left and right {_verdict(left, right)}")
        return f"{self.name}: {', '.join(parts)}"


@dataclass(frozen=True)
class Reading:
    """All batches at one step."""

    step: int
    batches: Mapping[str, BatchReading]

    @property
    def line(self) -> str:
        """For a terminal or a log."""
        return f"step {self.step:,}  " + "  |  ".join(batch.line for batch in self.batches.values())


def read(step: int, table: pa.Table, names: Sequence[str], model: str, seed: int) -> Reading:
    """The reading of the rows of one step."""
    return Reading(step, {name: _batch(table, name, model, seed) for name in names})


def measure_means(table: pa.Table, batch: str, *by: str) -> dict[tuple[str, ...], float | None]:
    """Mean over heads of each measure of a whole batch, by measure and whatever else is named."""
    mine = table.filter(pc.equal(table["input"], batch))
    found = mine.group_by(["measure", *by], use_threads=False).aggregate([("value", "mean")])
    keys = zip(*(found[name].to_pylist() for name in ("measure", *by)), strict=True)
    return dict(zip(keys, found["value_mean"].to_pylist(), strict=True))


def _batch(table: pa.Table, batch: str, model: str, seed: int) -> BatchReading:
    means = {name: value for (name,), value in measure_means(table, batch).items()}
    scored = table.filter(pc.starts_with(table["input"].cast(pa.string()), f"{batch}/"))
    if not scored.num_rows:
        return BatchReading(batch, means, None, {})
    evidence = Evidence.of_table(scored)
    theories = dict.fromkeys(ALIGNMENT, "kpca")
    if pc.any(pc.equal(scored["theory"], PRIMAL_SVD.name)).as_py():
        theories |= dict.fromkeys(SINGULAR, PRIMAL_SVD.name)
    scores = {
        name: head_score(head_table(evidence, model, name, theory), measure_named(name), level=CONFIDENCE, seed=seed)
        for name, theory in theories.items()
    }
    return BatchReading(batch, means, _explained(evidence), scores)


def _explained(evidence: Evidence) -> float | None:
    def mean(name: str) -> float | None:
        value: float | None = pc.mean(evidence.where("value", measure=name, reference=OBSERVED)["value"]).as_py()
        return value

    floor, phi = mean("projection_error_floor"), mean("phi_norm2")
    if floor is None or not phi:
        return None
    share = 1 - floor / phi
    # Where queries lie in the span of few keys, ‖φ‖² and the floor are both rounding: no share of anything.
    return share if -_ROUNDING <= share <= 1 + _ROUNDING else None


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.4g}"


def _verdict(*scores: Score) -> str:
    places = " and ".join(_place(score) for score in scores)
    return f"{places} (0 is chance, 1 the claim)" if any(map(_decides, scores)) else places


def _place(score: Score) -> str:
    if _decides(score):
        return f"{score.mean:z.2f}"
    return "not identifiable" if score.mean is not None or score.unidentifiable else "not measurable"


def _decides(score: Score) -> bool:
    return score.mean is not None and score.has_power
