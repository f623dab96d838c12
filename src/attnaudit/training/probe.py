"""What a monitor measures, and with what: one look at every batch, all ranks together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from torch import nn

from attnaudit.measures import Selection
from attnaudit.measures.measuring import measure_heads, measure_primal
from attnaudit.records.notes import Notes
from attnaudit.records.run_folder import RunKind
from attnaudit.records.schema import rows
from attnaudit.training import ranks
from attnaudit.training.fixed_batches import FixedBatch
from attnaudit.training.observation import Observation, batch_rows, observe
from attnaudit.training.untouched import untouched

#: What is measured of the inputs that are scored: all that decides a claim about kernel PCA or Primal-Attention.
MEASURES = (
    "column_cosine_matched",
    "procrustes",
    "value_subspace_overlap",
    "principal_angle_median",
    "eigenvector_residual",
    "centering_defect",
    "subspace_overlap",
    "projection_error_matched",
    "projection_error_rotated",
    "projection_error_floor",
    "phi_norm2",
    "output_norm2",
    "projection_error_mae",
    "projection_error_rel_output",
    "projection_error_rel_phi",
    "kernel_rank",
    "ksvd_left_overlap",
    "ksvd_right_overlap",
    "ksvd_dual_residual",
    "ksvd_objective",
)


@dataclass(frozen=True)
class Probe:
    """A model and its batches, with everything else that the numbers depend on."""

    model: nn.Module
    label: str
    batches: tuple[FixedBatch, ...]
    selection: Selection
    scores: int
    legacy: bool

    @property
    def identity(self) -> dict[str, Any]:
        """All of it beside the weights, as plain data."""
        return {
            "kind": RunKind.MONITOR.value,
            "monitor": {
                "settings": self.selection.identity,
                "scores": self.scores,
                "legacy": self.legacy,
                "mode": {batch.name: batch.mode for batch in self.batches},
                "ranks": ranks.count(),
            },
            "models": [self.label],
            "inputs": [[batch.name, batch.fingerprint] for batch in self.batches],
        }

    def measure(self) -> tuple[pa.Table, Notes] | None:
        """The rows of every batch over all ranks, and of the inputs scored on rank 0; None on the other ranks."""
        with untouched(self.model, "eval", self.selection.seed):
            seen = ranks.together(self._look)
            tables = [table for one in seen for table in batch_rows(one)]
            if not ranks.is_main():
                return None
            solved: Counter[str] = Counter()
            for one in seen:
                if one.scored:
                    tables += map(rows, measure_heads(one.scored, self.selection, solved))
                for heads in one.look.primal:
                    tables += map(rows, measure_primal(heads, self.selection))
        # One chunk instead of one per layer, reference and measure: it is questioned about each measure by itself.
        return pa.concat_tables(tables).unify_dictionaries().combine_chunks(), _notes(seen, solved)

    def _look(self) -> list[Observation]:
        scores = self.scores if ranks.is_main() else 0
        return [self._observed(batch, scores) for batch in self.batches]

    def _observed(self, batch: FixedBatch, scores: int) -> Observation:
        with untouched(self.model, batch.mode, self.selection.seed):
            return observe(self.model, batch, label=self.label, scores=scores, legacy=self.legacy)


def _notes(seen: Sequence[Observation], solved: Counter[str]) -> Notes:
    errors: dict[str, float] = {}
    for one in seen:
        for layer, error in one.look.transcript.certificate.errors.items():
            errors[layer] = max(error, errors.get(layer, 0.0))
    refusals = dict.fromkeys((refusal.layer, refusal.reason) for one in seen for refusal in one.look.refusals)
    return Notes((), errors, tuple(refusals), dict(solved))
