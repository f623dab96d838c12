"""A finished model under the same probe as one in training."""

from __future__ import annotations

import pyarrow as pa
from torch import nn

from attnaudit.capture.capture import Inputs
from attnaudit.errors import CaptureError
from attnaudit.measures import REFERENCES, select
from attnaudit.measures.measuring import measure_primal
from attnaudit.records.evidence import Evidence
from attnaudit.records.schema import rows
from attnaudit.training.fixed_batches import UNNAMED, FixedBatch
from attnaudit.training.preservation import preserved_state, unwrapped
from attnaudit.training.probe import run_forward


def primal_evidence(
    model: nn.Module, inputs: Inputs, *, name: str | None = None, repeats: int = 1, seed: int = 0
) -> Evidence:
    """Do the Primal-Attention layers of a model find singular vectors? One row per input, layer, head and reference.

    Args:
        model: any torch module; it runs in evaluation mode and is afterwards what it was.
        inputs: what the model is called with: a tensor, a tuple of arguments, or a mapping of keyword arguments; batch
            first.
        name: how the model is called in the evidence; its class if None.
        repeats: how often each reference is drawn.
        seed: of the references.

    Raises:
        CaptureError: there is no Primal-Attention that can be measured.
        InputError: the model cannot be called with the inputs.
    """
    model = unwrapped(model)
    label, batch = name or type(model).__name__, FixedBatch(UNNAMED, inputs)
    selection = select(references=REFERENCES, repeats=repeats, seed=seed)
    with preserved_state(model, "eval", seed):
        seen = run_forward(model, batch, lambda heads: None, label=label, scores=len(batch))
        if not seen.primal:
            why = "; ".join(f"{r.layer}: {r.reason}" for r in seen.refusals) or "it has no such layer"
            raise CaptureError(f"No Primal-Attention of {label} can be measured ({why}).")
        tables = [table for heads in seen.primal for table in map(rows, measure_primal(heads, selection))]
    return Evidence.of_table(pa.concat_tables(tables).unify_dictionaries().combine_chunks())
