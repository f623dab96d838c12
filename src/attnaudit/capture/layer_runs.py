"""Which attention calls are of one layer: windows one after the other, or inputs, and not a second run of a module."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import torch
from jaxtyping import Int
from torch import Tensor

from attnaudit.capture.attention_call import AttentionCall
from attnaudit.capture.placing import Placing
from attnaudit.capture.tracing.labels import APART


@dataclass(frozen=True)
class _Looked:
    """What calls for the same inputs looked at: tokens of all queries, and of the last keys, and rows for values."""

    queries: Int[Tensor, "queries"] | None
    keys: Int[Tensor, "tokens"] | None
    source: Tensor | None
    rows: Int[Tensor, "rows"] | None

    @staticmethod
    def at(call: AttentionCall) -> _Looked:
        """What one call looked at."""
        tokens, source = call.tokens, call.source
        return _Looked(
            None if tokens is None else tokens.all_queries,
            None if tokens is None else tokens.all_keys,
            None if source is None else source.rows,
            None if source is None else torch.unique(source.tokens),
        )

    def after(self, before: _Looked) -> _Looked:
        """Both of them."""
        same = self.source is None or before.source is None or _is_one(self.source, before.source)
        rows = _both(before.rows, self.rows) if same else self.rows
        return _Looked(_both(before.queries, self.queries), self.keys, self.source, rows)

    def is_apart_from(self, before: _Looked) -> bool:
        """Whether this is another window: other queries and keys of one tensor of tokens, or values of other rows."""
        a, b, keys, others = self.queries, before.queries, self.keys, before.keys
        if a is not None and b is not None and keys is not None and others is not None:
            one_tensor = len(torch.unique(torch.cat([a, b, keys, others]) // APART)) == 1
            return one_tensor and not bool(torch.isin(a, b).any()) and not torch.equal(keys, others)
        if self.source is None or before.source is None or self.rows is None or before.rows is None:
            return False
        return _is_one(self.source, before.source) and not bool(torch.isin(self.rows, before.rows).any())


@dataclass
class LayerRun:
    """The calls of a layer so far: how many windows each input has, and what the calls of the last execution looked at.

    An execution is one forward pass of the module that a call belongs to.
    """

    number: int
    heads: int
    _windows: Counter[int] = field(default_factory=Counter)
    _execution: int | None = None
    _looked: dict[frozenset[int], _Looked] = field(default_factory=dict)

    def first_window(self, call: AttentionCall, places: Placing) -> int | None:
        """The number of the first window of a call of this layer, for other inputs or windows; None if it is none."""
        if self.heads != places.heads:
            return None
        samples = _samples(places)
        seen = max(self._windows[sample] for sample in samples)
        if not seen:
            return 0
        before = [looked for own, looked in self._looked.items() if not own.isdisjoint(samples)]
        if call.execution is None or call.execution != self._execution or not before:
            return None
        now = _Looked.at(call)
        return seen if all(now.is_apart_from(looked) for looked in before) else None

    def add(self, call: AttentionCall, places: Placing) -> None:
        """A call of this layer."""
        if call.execution != self._execution:
            self.forget()
        self._execution, samples, now = call.execution, _samples(places), _Looked.at(call)
        self._windows.update(dict.fromkeys(samples, places.windows))
        self._looked[samples] = now.after(self._looked[samples]) if samples in self._looked else now

    def forget(self) -> None:
        """Let go of what its calls looked at, once another layer runs."""
        self._looked.clear()


def _samples(places: Placing) -> frozenset[int]:
    return frozenset(places.sample.tolist())


def _both(before: Tensor | None, now: Tensor | None) -> Tensor | None:
    return None if before is None or now is None else torch.cat([before, now])


def _is_one(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are the same one, both of which are alive."""
    return a.data_ptr() == b.data_ptr() and a.shape == b.shape and a.stride() == b.stride()
