"""The rows of a monitor: stored step by step, in a run folder or in memory, and read as a few numbers and a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from attnaudit._version import __version__
from attnaudit.errors import AttnAuditError
from attnaudit.measures import measure_named
from attnaudit.numerics.digest import digest
from attnaudit.records.evidence import Evidence
from attnaudit.records.head_table import head_table
from attnaudit.records.layer_table import LayerMeans, layer_table
from attnaudit.records.notes import Notes
from attnaudit.records.parts import encode_part
from attnaudit.records.run_folder import RunFolder
from attnaudit.records.schema import OBSERVED, SCHEMA, VERSION
from attnaudit.records.verdict import Score
from attnaudit.records.versions import installed_versions
from attnaudit.statistics.scores import head_score
from attnaudit.theories.registry import PRIMAL_SVD

#: The measures of kernel PCA that are scored: those that decide a claim. The first is in the line.
ALIGNMENT = (
    "column_cosine_matched",
    "value_subspace_overlap",
    "procrustes",
    "projection_alignment_matched",
    "projection_alignment_rotated",
)
#: The same for Primal-Attention: whether E and R are singular vectors.
SINGULAR = ("ksvd_left_overlap", "ksvd_right_overlap", "ksvd_dual_residual")

_ROUNDING = 1e-6


class MemoryStore:
    """Rows by step, as long as the monitor lives. A step that is measured again replaces itself."""

    def __init__(self) -> None:
        self._tables: dict[int, pa.Table] = {}

    def add(self, step: int, table: pa.Table, notes: Notes) -> None:
        """Keep the rows of a step."""
        self._tables[step] = table

    def rows_at(self, step: int) -> Evidence:
        """The rows of a step."""
        return Evidence.of_table(self._tables[step])

    @property
    def rows(self) -> Evidence:
        """All rows, in order of steps."""
        tables = [table for _, table in sorted(self._tables.items())]
        return Evidence.of_table(pa.concat_tables(tables or [SCHEMA.empty_table()]).unify_dictionaries())


class FolderStore:
    """A part per step in a run folder, named by a hash of the folder's run and the step; `run.json` lists `steps`.

    The hash is of the run and not of the batches, so that a step measured again, even on other inputs, replaces itself.
    """

    def __init__(self, folder: RunFolder, *, own: bool = False) -> None:
        self._folder, self._own = folder, own
        self._run = folder.header()["identity"]

    @staticmethod
    def at(path: Path, identity: dict[str, Any]) -> FolderStore:
        """A folder of the monitor's own: created, or continued if it has the same identity.

        Raises:
            RunFolderError: it cannot be written, holds something else, or is being written by another process.
        """
        folder = RunFolder(path)
        description = {"attnaudit": __version__, "versions": installed_versions()}
        folder.lock()
        try:
            folder.open(identity, description)
        except AttnAuditError:
            folder.unlock()
            raise
        return FolderStore(folder, own=True)

    def add(self, step: int, table: pa.Table, notes: Notes) -> None:
        """Write the part of a step."""
        key = digest(VERSION, step, self._run)
        with self._folder.locked():
            self._folder.parts.write(key, encode_part(key, table, notes))
            settings = self._folder.header()
            parts, steps = settings.get("parts", []), settings.get("steps", {})
            if steps.get(str(step)) != key:
                self._folder.extend_settings(parts=[*parts, key], steps={**steps, str(step): key})

    def unlock(self) -> None:
        """Let others write into a folder of the monitor's own, as far as it writes no more."""
        if self._own:
            self._folder.unlock()

    def rows_at(self, step: int) -> Evidence:
        """The rows of a step."""
        return self._folder.parts.evidence([self._folder.header()["steps"][str(step)]])

    @property
    def rows(self) -> Evidence:
        """All rows, in order of steps."""
        steps = self._folder.header().get("steps", {})
        return self._folder.parts.evidence([steps[step] for step in sorted(steps, key=int)])


@dataclass(frozen=True, repr=False)
class BatchReading:
    """One batch at one step.

    `means` has the mean over layers and heads of every measure of the whole batch. `explained` is the share of ‖φ(q)‖²
    that kernel PCA itself explains, 1 - floor/‖φ(q)‖², and `scores` are the positions of the heads between chance (0)
    and the theory (1); both come from the scored inputs of the batch, and are missing if there are none.
    """

    name: str
    means: Mapping[str, float | None]
    explained: float | None
    scores: Mapping[str, Score]

    @property
    def line(self) -> str:
        """Projection error, norms, share explained, alignment, and singular vectors of Primal-Attention."""
        parts = [
            f"J {_number(self.means['projection_error_mae'])}",
            f"‖φ‖² {_number(self.means['phi_norm2_median'])} (median)",
            f"‖h‖² {_number(self.means['output_norm2'])}",
        ]
        if self.explained is not None:
            parts.append(f"kernel PCA explains {self.explained:.0%}")
        if self.scores:
            parts.append(f"alignment {_scores_text(self.scores[ALIGNMENT[0]])}")
        if SINGULAR[0] in self.scores:
            left, right, _ = (self.scores[name] for name in SINGULAR)
            parts.append(f"singular vectors left and right {_scores_text(left, right)}")
        return f"{self.name}: {', '.join(parts)}"

    def __repr__(self) -> str:
        return f"BatchReading({self.line})"


@dataclass(frozen=True, repr=False)
class Reading:
    """All batches at one step."""

    step: int
    batches: Mapping[str, BatchReading]

    @property
    def line(self) -> str:
        """For a terminal or a log."""
        return f"step {self.step:,}  " + "  |  ".join(batch.line for batch in self.batches.values())

    def __repr__(self) -> str:
        return f"Reading({self.line})"


def read(step: int, table: pa.Table, names: Sequence[str], model: str) -> Reading:
    """The reading of the rows of one step."""
    return Reading(step, {name: _read_batch(table, name, model) for name in names})


def measure_means(table: pa.Table, batch: str, *by: str) -> dict[tuple[str, ...], float | None]:
    """The mean over heads of each measure of a whole batch, by measure and the other columns in `by`."""
    mine = table.filter(pc.equal(table["input"], batch))
    found = mine.group_by(["measure", *by], use_threads=False).aggregate([("value", "mean")])
    keys = zip(*(found[name].to_pylist() for name in ("measure", *by)), strict=True)
    return dict(zip(keys, found["value_mean"].to_pylist(), strict=True))


def reading_layers(reading: Reading, table: pa.Table) -> pa.Table:
    """A row per batch, theory and layer of the rows of one step: means over heads, and scores.

    What was measured of the whole batch is taken from there, all else from its scored inputs.
    """
    inputs = table["input"].cast(pa.string())
    measures = table["measure"].cast(pa.string())
    parts: list[pa.Table] = []
    scores: dict[tuple[str, str], list[Score]] = {}
    for name, batch in reading.batches.items():
        whole, scored = pc.equal(inputs, name), pc.starts_with(inputs, f"{name}/")
        of_batch = pc.is_in(measures, value_set=pa.array(list(batch.means), pa.string()))
        mine = table.filter(pc.or_(whole, pc.and_not(scored, of_batch)))
        parts.append(mine.append_column("batch", pa.array([name] * mine.num_rows, pa.string())))
        for measure, score in batch.scores.items():
            scores.setdefault((name, _theory(measure)), []).append(score)
    by = ("batch", "theory")
    return layer_table(LayerMeans.of_rows(pa.concat_tables(parts), by), by, scores)


def _theory(measure: str) -> str:
    return PRIMAL_SVD.name if measure in SINGULAR else "kpca"


def _read_batch(table: pa.Table, batch: str, model: str) -> BatchReading:
    means = {name: value for (name,), value in measure_means(table, batch).items()}
    scored = table.filter(pc.starts_with(table["input"].cast(pa.string()), f"{batch}/"))
    if not scored.num_rows:
        return BatchReading(batch, means, None, {})
    evidence = Evidence.of_table(scored)
    has_primal = pc.any(pc.equal(scored["theory"], PRIMAL_SVD.name)).as_py()
    scores = {
        name: head_score(head_table(evidence, model, name, _theory(name)), measure_named(name))
        for name in (*ALIGNMENT, *(SINGULAR if has_primal else ()))
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
    # If queries are in the span of few keys, ‖φ‖² and the floor are both rounding errors, and their ratio is arbitrary.
    return share if -_ROUNDING <= share <= 1 + _ROUNDING else None


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.4g}"


def _scores_text(*scores: Score) -> str:
    words = " and ".join(_score_text(score) for score in scores)
    return f"{words} (0 is chance, 1 the claim)" if any(map(_has_position, scores)) else words


def _score_text(score: Score) -> str:
    if score.score is not None:
        return f"{score.score.mean:z.2f}"
    if score.impossible:
        return "impossible"
    return "not identifiable" if score.unidentifiable or score.uninformative else "not measured"


def _has_position(score: Score) -> bool:
    return score.score is not None
