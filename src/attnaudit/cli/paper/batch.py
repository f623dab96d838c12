"""Capture a few inputs as one batch, for the figures of heads and for the forensics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attnaudit.cli.console import say
from attnaudit.errors import InputError

if TYPE_CHECKING:
    from attnaudit.capture import Capture
    from attnaudit.sources.inputs import Shard
    from attnaudit.sources.model import ModelSpec
    from attnaudit.sources.selection import InputSelection


def one_batch(specs: Sequence[ModelSpec], choice: InputSelection) -> Shard:
    """All inputs that the options name, as one batch."""
    from attnaudit.protocol import Protocol
    from attnaudit.sources.images import ImageShard
    from attnaudit.sources.selection import select_inputs
    from attnaudit.sources.texts import TextShard

    shards = select_inputs(specs, choice, Protocol.PAPER).shards
    if all(isinstance(shard, ImageShard) for shard in shards):
        return ImageShard(tuple(i for shard in shards if isinstance(shard, ImageShard) for i in shard.items))
    return TextShard(tuple(i for shard in shards if isinstance(shard, TextShard) for i in shard.items))


def capture_batch(spec: ModelSpec, shard: Shard, device: str) -> Capture:
    """Every head of a model on this batch; inputs that cannot be read are reported."""
    from attnaudit.audit.unit import capture_prepared
    from attnaudit.protocol import Protocol
    from attnaudit.sources.model import load_model

    model = load_model(spec)
    prepared = shard.prepare(model, Protocol.PAPER)
    for name, reason in prepared.skipped:
        say(f"skipped input {name}: {reason}")
    if prepared.inputs is None:
        raise InputError("None of the images could be read.")
    return capture_prepared(model.module, prepared, device, model.label)
