"""One look at a model: a forward pass of a fixed batch, of which a few numbers per token are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import torch
from torch import nn

from attnaudit.capture.attention_call import Refusal
from attnaudit.capture.capture import capture_each
from attnaudit.capture.heads import Heads
from attnaudit.capture.primal_heads import PrimalHeads
from attnaudit.capture.result import CaptureLog
from attnaudit.errors import AttnAuditError, InputError, first_line
from attnaudit.measures.batches import heads_per_input
from attnaudit.protocol import Protocol
from attnaudit.records.head_id import HeadId
from attnaudit.records.schema import Measurement, RowKey, rows
from attnaudit.training import ranks
from attnaudit.training.fixed_batches import FixedBatch
from attnaudit.training.primal_sight import primal_layers
from attnaudit.training.quantities import TokenNumbers, batch_measures, token_numbers, why_missing


@dataclass(frozen=True)
class Layer:
    """The tokens of a whole batch in one layer; `heads` are those of one input, which give names and shapes."""

    heads: Heads
    numbers: TokenNumbers


@dataclass(frozen=True)
class Observation:
    """What this process saw of a batch: every layer by its number, and the heads of the first inputs in full."""

    layers: dict[int, Layer]
    scored: tuple[Heads, ...]
    look: Look


@dataclass(frozen=True)
class Look:
    """A forward pass, the Primal-Attention layers on its first inputs, and which layers nothing is known of."""

    transcript: CaptureLog
    primal: tuple[PrimalHeads, ...]
    refusals: tuple[Refusal, ...]


def observe(model: nn.Module, batch: FixedBatch, *, label: str, scores: int, legacy: bool) -> Observation:
    """Run the model once; keep per layer what `token_numbers` makes of it, and the heads of the first `scores` inputs.

    Raises:
        CaptureError: no layer can be captured.
        InputError: the model cannot be called with the batch.
    """
    layers: dict[int, Layer] = {}
    scored: list[Heads] = []

    def look(heads: Heads) -> None:
        number = heads.index[0].layer
        each = heads_per_input(heads)
        names = tuple(HeadId(label, batch.name, number, head) for head in range(each))
        layers[number] = Layer(replace(_first(heads, each), index=names), token_numbers(heads, legacy=legacy))
        if scores:
            scored.append(_first(heads, len(heads) // len(batch) * min(scores, len(batch))))

    seen = look_at(model, batch, look, label=label, scores=scores)
    seen.transcript.require_heads(label)
    return Observation(layers, tuple(scored), seen)


def look_at(model: nn.Module, batch: FixedBatch, on_layer: Callable[[Heads], None], *, label: str, scores: int) -> Look:
    """Run the model once: softmax attention goes to `on_layer`, Primal-Attention of the first inputs is kept.

    Raises:
        InputError: the model cannot be called with the batch.
    """
    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    try:
        with primal_layers(model, len(batch), scores) as primal:
            transcript = capture_each(model, batch.on(device), batch.input_names, on_layer, model_name=label)
    except AttnAuditError:
        raise
    except Exception as error:
        raise InputError(
            f"{label} cannot be called with the batch {batch.name!r} ({type(error).__name__}: {first_line(error)}): "
            "give the monitor what the model's forward takes."
        ) from error
    numbers, names = transcript.refused_numbers, batch.input_names[:scores]
    others = tuple(refusal for refusal in transcript.refusals if refusal.layer not in primal)
    return Look(
        transcript,
        tuple(layer.heads(label, names, numbers[name]) for name, layer in primal.items() if layer.refusal is None),
        others + tuple(layer.refusal for layer in primal.values() if layer.refusal is not None),
    )


def _first(heads: Heads, count: int) -> Heads:
    """The first heads by themselves; in float64, so that they are copies and the batch they come from can go."""
    return replace(heads.part(0, count), source=None).to(torch.float64)


def batch_rows(seen: Observation) -> Iterator[pa.Table]:
    """Rows per layer and head over the tokens of all processes; every process must call this."""
    everywhere = set.intersection(*ranks.everyones(set(seen.layers)))
    for number in sorted(everywhere):
        layer = seen.layers[number]
        numbers = ranks.side_by_side(layer.numbers)
        values = batch_measures(numbers)
        problems = dict.fromkeys(values, why_missing(numbers))
        yield rows(Measurement(layer.heads, RowKey("kpca"), values, problems, Protocol.EXACT))
