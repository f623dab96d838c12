"""What workers of one machine leave to each other: the spans predicted for the inputs that each of them measured.

The fits need all inputs, and every worker has seen some. So each unit leaves a file for every part of the layers, in a
folder that lives as long as the workers. A fit that does not find one, because the unit is not finished, was finished
by an earlier run or left too much, predicts these inputs again: the numbers are the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from attnaudit.measures.ceiling import PredictedSpans
from attnaudit.numerics.digest import digest
from attnaudit.records.head_id import HeadId
from attnaudit.sources.inputs import Shard

#: The entry of the metadata that says whose heads and which theories each batch has.
_BATCHES = "batches"


@dataclass
class Leaving:
    """What a unit leaves, as long as it takes no more than `room` bytes."""

    room: float
    spans: list[PredictedSpans] = field(default_factory=list)

    def add(self, spans: PredictedSpans | None) -> None:
        """Those of one more batch."""
        if spans is None or self.room < 0:
            return
        self.room -= spans.source.nbytes + sum(own.nbytes for own in spans.bases.values())
        self.spans.append(spans)
        if self.room < 0:
            self.spans.clear()


@dataclass(frozen=True)
class Handover:
    """The files of a model in a folder; its layers are in `parts`, those whose number modulo `parts` is the same."""

    folder: Path
    model: tuple[str, str]
    parts: int

    def leave(self, shard: Shard, left: Leaving) -> None:
        """Write the files of a shard, each at once, so that nobody reads half of one."""
        if left.room < 0:
            return
        for part in range(self.parts):
            own = [spans for spans in left.spans if spans.index[0].layer % self.parts == part]
            file = self._file(shard, part)
            written = file.with_suffix(f".{os.getpid()}")
            batches = [(spans.index, list(spans.bases)) for spans in own]  # tensors come back in another order
            save_file(_tensors(own), written, {_BATCHES: json.dumps(batches)})
            written.replace(file)

    def has(self, shard: Shard, part: int) -> bool:
        """Whether the unit of a shard has left a part of the layers."""
        return self._file(shard, part).exists()

    def taken(self, shard: Shard, part: int) -> list[PredictedSpans]:
        """What it has left, copied: the last digits of products depend on where a matrix begins in memory."""
        with safe_open(self._file(shard, part), "pt") as file:
            return [
                PredictedSpans(
                    tuple(HeadId(*entry) for entry in index),
                    file.get_tensor(_source(place)).clone(),
                    {theory: file.get_tensor(_basis(place, theory)).clone() for theory in theories},
                )
                for place, (index, theories) in enumerate(json.loads(file.metadata()[_BATCHES]))
            ]

    def _file(self, shard: Shard, part: int) -> Path:
        return self.folder / digest(self.model, shard.identity, part, self.parts)


def _tensors(left: Sequence[PredictedSpans]) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for place, spans in enumerate(left):
        found[_source(place)] = spans.source.contiguous()
        found |= {_basis(place, theory): own for theory, own in spans.bases.items()}
    return found


def _source(place: int) -> str:
    return f"{place}/source"


def _basis(place: int, theory: str) -> str:
    return f"{place}/basis/{theory}"
