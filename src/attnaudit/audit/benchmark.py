"""The stages of an audit (Table 1's measures), timed on this machine."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import torch

from attnaudit.audit.inspection import with_any_weights
from attnaudit.audit.plan import plan_audit
from attnaudit.audit.settings import AuditSettings
from attnaudit.audit.stages import MEASURES, Stages, measure_stages
from attnaudit.audit.unit import AuditUnit
from attnaudit.errors import UsageError
from attnaudit.numerics.threads import single_threaded
from attnaudit.protocol import Protocol
from attnaudit.records.engine import default_memory
from attnaudit.sources.inputs import shard_size, tensor_shards
from attnaudit.sources.model import load_model

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Benchmark:
    """What was timed, where, and how long each stage took."""

    model: str
    device: str
    protocol: Protocol
    stages: Stages

    @property
    def record(self) -> dict[str, Any]:
        """As plain data, in microseconds per head."""
        stages, per_head = self.stages, 1e6 / self.stages.heads
        return {
            "model": self.model,
            "device": self.device,
            "protocol": self.protocol.value,
            "heads": stages.heads,
            "microseconds_per_head": {name: value * per_head for name, value in stages.seconds.items()},
            "other": stages.other * per_head,
            "total": stages.total * per_head,
            "floor": stages.floor * per_head,
            "total_over_floor": stages.total / stages.floor,
        }


def benchmark(name: str, limit: int | None, protocol: Protocol, device: str) -> Benchmark:
    """Time one unit of work on images of noise, by default as many as an audit takes at once.

    Raises:
        UsageError: the model reads text.
    """
    loaded = load_model(with_any_weights(name))
    config = getattr(loaded.module, "default_cfg", None)
    if config is None:
        raise UsageError(f"{name} reads text, but attnaudit bench times vision models only.")
    count = limit or shard_size(device)
    noise = torch.randn(count, *config["input_size"], generator=torch.Generator().manual_seed(0))
    settings = AuditSettings(protocol=protocol, measures=MEASURES, device=device)
    unit, *_ = plan_audit([loaded], tensor_shards(noise, count), settings).units
    assert isinstance(unit, AuditUnit)
    where = torch.cuda.get_device_name() if device == "cuda" else "one CPU thread"
    trained = "random" if loaded.weights_origin == "random" else "trained"
    plain = loaded.label.partition(" ")[0]
    _log.info("Timing %s (%s weights) on %d images of noise at a time, on %s.", plain, trained, count, where)
    with single_threaded():
        return Benchmark(loaded.label, where, protocol, measure_stages(loaded, unit, default_memory()))
