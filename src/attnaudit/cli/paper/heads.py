"""The heads of a few inputs, captured at once: what figures of heads and the forensics are computed from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attnaudit.cli.console import say

if TYPE_CHECKING:
    from attnaudit.capture import Heads
    from attnaudit.sources.inputs import Shard
    from attnaudit.sources.model import ModelSpec
    from attnaudit.sources.selection import InputSelection


def batch_of(specs: Sequence[ModelSpec], choice: InputSelection) -> Shard:
    """All inputs that the options name, as one batch."""
    from attnaudit.papers.study import one_batch
    from attnaudit.protocol import Protocol
    from attnaudit.sources.selection import select_inputs

    return one_batch(select_inputs(specs, choice, Protocol.PAPER).shards)


def captured(spec: ModelSpec, batch: Shard, device: str) -> Sequence[Heads]:
    """Every layer of a model on this batch; inputs that cannot be read are reported."""
    from attnaudit.papers.study import capture_batch

    found = capture_batch(spec, batch, device)
    for name, reason in found.skipped:
        say(f"skipped input {name}: {reason}")
    return found.layers
