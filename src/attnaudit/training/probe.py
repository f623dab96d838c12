"""One measurement of a model on the fixed batches of a monitor, by all ranks together.

A forward pass keeps a few numbers per token of the whole batch, and the heads of the first inputs in full; these are
measured as an audit measures them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnaudit.capture.capture import capture_each
from attnaudit.capture.heads import Heads
from attnaudit.capture.result import CaptureLog
from attnaudit.errors import AttnAuditError, InputError, first_line
from attnaudit.kernel.feature import TokenNorms, token_norms
from attnaudit.measures import Selection
from attnaudit.measures.legacy import legacy_log_phi, log_mean_excess
from attnaudit.measures.measuring import measure_heads, measure_primal
from attnaudit.measures.norms import log_domain_mean, norm_measures
from attnaudit.protocol import Protocol
from attnaudit.records.head_id import HeadId
from attnaudit.records.notes import Notes
from attnaudit.records.rows import rows_of
from attnaudit.records.run_kind import RunKind
from attnaudit.records.schema import Measurement, RowKey
from attnaudit.training.distributed import Ranks, concatenate_ranks, gather, on_all_ranks
from attnaudit.training.fixed_batches import FixedBatch
from attnaudit.training.preservation import preserved_state

#: What is measured of the scored inputs: all that decides or describes a claim about kernel PCA or Primal-Attention.
MEASURES = (
    "column_cosine_matched",
    "procrustes",
    "value_subspace_overlap",
    "principal_angle_median",
    "eigenvector_residual",
    "centering_defect",
    "subspace_overlap",
    "projection_alignment_matched",
    "projection_alignment_rotated",
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
#: Per head: log ‖φ(q)‖² and ‖h‖² of every token, and Teo & Nguyen's log ‖φ(q)‖² on request.
TokenNumbers = Float[Tensor, "quantities heads tokens"]


@dataclass(frozen=True)
class Probe:
    """A model, its batches, and everything else that the numbers depend on."""

    model: nn.Module
    label: str
    batches: tuple[FixedBatch, ...]
    selection: Selection
    scores: int
    legacy: bool

    @property
    def identity(self) -> dict[str, Any]:
        """All of it except the weights, as plain data."""
        return {
            "kind": RunKind.MONITOR.value,
            "monitor": {
                "settings": self.selection.identity,
                "scores": self.scores,
                "legacy": self.legacy,
                "mode": {batch.name: batch.mode for batch in self.batches},
                "ranks": Ranks.current().count,
            },
            "models": [self.label],
            "inputs": [[batch.name, batch.fingerprint] for batch in self.batches],
        }

    def measure(self) -> tuple[pa.Table, Notes] | None:
        """Rows of every batch over all ranks, and of the scored inputs of the main rank; None on the other ranks."""
        with preserved_state(self.model, "eval", self.selection.seed):
            seen = on_all_ranks(self._observe_all)
            tables = [table for one in seen for table in batch_rows(one)]
            if not Ranks.current().is_main:
                return None
            solved: Counter[str] = Counter()
            for one in seen:
                if one.scored:
                    tables.append(rows_of(measure_heads(one.scored, self.selection, solved)))
                tables += [rows_of(measure_primal(heads, self.selection)) for heads in one.log.primal.values()]
        # One chunk instead of one per layer, reference and measure: later queries select single measures.
        return pa.concat_tables(tables).unify_dictionaries().combine_chunks(), _notes(seen, solved)

    def _observe_all(self) -> list[Observation]:
        scores = self.scores if Ranks.current().is_main else 0
        return [self._observe(batch, scores) for batch in self.batches]

    def _observe(self, batch: FixedBatch, scores: int) -> Observation:
        with preserved_state(self.model, batch.mode, self.selection.seed):
            return observe(self.model, batch, label=self.label, scores=scores, legacy=self.legacy)


def _notes(seen: Sequence[Observation], solved: Counter[str]) -> Notes:
    errors: dict[str, float] = {}
    for one in seen:
        for layer, error in one.log.certificate.errors.items():
            errors[layer] = max(error, errors.get(layer, 0.0))
    refusals = dict.fromkeys((refusal.layer, refusal.reason) for one in seen for refusal in one.log.refusals)
    return Notes((), errors, tuple(refusals), dict(solved))


@dataclass(frozen=True)
class Observation:
    """What this rank keeps of a batch.

    `layers` has, by layer number, the heads of one input, for names and shapes, and the token numbers of the batch;
    `scored` has the heads of the first inputs in full, and `log` those of Primal-Attention.
    """

    layers: dict[int, tuple[Heads, TokenNumbers]]
    scored: tuple[Heads, ...]
    log: CaptureLog


def observe(model: nn.Module, batch: FixedBatch, *, label: str, scores: int, legacy: bool) -> Observation:
    """Run the model once; keep the token numbers of every layer, and the heads of the first `scores` inputs.

    Of a padded batch, inputs of one length come together, so that a layer may come in several parts.

    Raises:
        CaptureError: no layer can be captured.
        InputError: the model cannot be called with the batch.
    """
    firsts: dict[int, Heads] = {}
    parts: dict[int, list[TokenNumbers]] = defaultdict(list)
    scored: list[Heads] = []
    names = batch.input_names

    def keep(heads: Heads) -> None:
        number = heads.index[0].layer
        each = heads.per_input
        if number not in firsts:
            own = tuple(HeadId(label, batch.name, number, head) for head in range(each))
            firsts[number] = replace(_first(heads, each), index=own)
        parts[number].append(token_numbers(heads, legacy=legacy))
        # Inputs are in the order of the batch, also within a part.
        if count := sum(entry.input in names[:scores] for entry in heads.index):
            scored.append(_first(heads, count))

    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    try:
        log = capture_each(model, batch.on(device), names, keep, model_name=label, primal_inputs=scores)
    except AttnAuditError:
        raise
    except Exception as error:
        raise InputError(
            f"{label} cannot be called with the batch {batch.name!r} ({type(error).__name__}: {first_line(error)}): "
            "pass the arguments of its forward."
        ) from error
    log.require_heads(label)
    layers = {number: (first, torch.cat(parts[number], dim=-1)) for number, first in firsts.items()}
    return Observation(layers, tuple(scored), log)


def _first(heads: Heads, count: int) -> Heads:
    """The first heads, in float64: a copy, so that the whole batch can be freed."""
    return replace(heads.part(0, count), source=None).to(torch.float64)


def token_numbers(heads: Heads, *, legacy: bool) -> TokenNumbers:
    """The quantities of a layer, with the tokens of all inputs and windows of the batch in one axis."""
    norms = token_norms(heads, scale=heads.scale.double())
    quantities = [norms.log_phi, norms.output]
    if legacy:
        quantities.append(legacy_log_phi(heads, norms.log_phi))
    number = torch.tensor([entry.head for entry in heads.index], device=norms.log_phi.device)
    order = torch.argsort(number, stable=True)
    return torch.stack(quantities)[:, order].reshape(len(quantities), heads.per_input, -1)


def batch_rows(seen: Observation) -> Iterator[pa.Table]:
    """Rows per layer and head over the tokens of all ranks; every rank must call this."""
    everywhere = set.intersection(*gather(set(seen.layers)))
    for number in sorted(everywhere):
        heads, own = seen.layers[number]
        numbers = concatenate_ranks(own)
        values = batch_measures(numbers)
        problems = dict.fromkeys(values, why_missing(numbers))
        yield rows_of([Measurement(heads, RowKey("kpca"), values, problems, Protocol.EXACT)])


def batch_measures(numbers: TokenNumbers) -> dict[str, Float[Tensor, "heads"]]:
    """Means, median and shares over all tokens of a batch; the mean of ‖φ(q)‖² by logsumexp."""
    norms = TokenNorms(numbers[0], numbers[1])
    values = norm_measures(norms) | {"phi_norm2": log_domain_mean(norms.log_phi)}
    if len(numbers) > 2:
        values["legacy_log_projection_error"] = log_mean_excess(numbers[2], norms.output)
    return values


def why_missing(numbers: TokenNumbers) -> list[str]:
    """The reason for missing numbers of each head: ‖φ(q)‖² may be too large, or its excess over ‖h‖² negative."""
    finite = torch.isfinite(torch.exp(numbers[0])).all(dim=-1)
    reasons = ("‖φ(q)‖² is beyond float64", "the mean of ‖φ(q)‖² - ‖h‖² is negative and has no logarithm")
    return [reasons[fits] for fits in finite.tolist()]
