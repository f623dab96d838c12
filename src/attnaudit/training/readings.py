"""What the rows of a step come to: a few numbers per batch, and one line of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from attnaudit.claims import kpca_eigenvectors, kpca_projection, kpca_values
from attnaudit.claims.claim import CONFIDENCE
from attnaudit.claims.scores import Score, score
from attnaudit.evidence.reading import Evidence
from attnaudit.evidence.schema import OBSERVED

#: Every measure that decides a claim about kernel PCA; the first stands in the line.
ALIGNMENT = tuple(
    name for module in (kpca_values, kpca_eigenvectors, kpca_projection) for name in module.CLAIM.deciding
)


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
        """Projection error, norms, what is explained, alignment."""
        parts = [
            f"J {_number(self.means['projection_error_mae'])}",
            f"‖φ‖² {_number(self.means['phi_norm2_median'])} (median)",
            f"‖h‖² {_number(self.means['output_norm2'])}",
        ]
        if self.explained is not None:
            parts.append(f"kernel PCA explains {self.explained:.0%}")
        if self.scores:
            parts.append(f"alignment {_verdict(self.scores[ALIGNMENT[0]])}")
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


def _batch(table: pa.Table, name: str, model: str, seed: int) -> BatchReading:
    means = {measure: value for (measure,), value in measure_means(table, name).items()}
    scored = table.filter(pc.starts_with(table["input"].cast(pa.string()), f"{name}/"))
    if not scored.num_rows:
        return BatchReading(name, means, None, {})
    evidence = Evidence.of_table(scored)
    scores = {measure: score(evidence, model, measure, "kpca", level=CONFIDENCE, seed=seed) for measure in ALIGNMENT}
    return BatchReading(name, means, _explained(evidence), scores)


def _explained(evidence: Evidence) -> float | None:
    def mean(measure: str) -> float | None:
        value: float | None = pc.mean(evidence.where("value", measure=measure, control=OBSERVED)["value"]).as_py()
        return value

    floor, phi = mean("projection_error_floor"), mean("phi_norm2")
    return 1 - floor / phi if floor is not None and phi else None


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.4g}"


def _verdict(score: Score) -> str:
    if score.mean is None:
        return "not identifiable" if score.unidentifiable else "not measurable"
    return f"{score.mean:z.2f} (0 is chance, 1 the claim)" if score.has_power else "not identifiable"
