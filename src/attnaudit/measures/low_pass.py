"""How much of an ideal low-pass filter is a head?

With the mean frequency c on the attention graph, outputs O, values V and the ideal low-pass V_low of V that has the
energy of O: (c(V) - c(O)) / (c(V) - c(V_low)). It is 1 for the ideal filter, 0 for outputs with the frequencies of the
values, and negative for outputs with higher ones.
"""

from __future__ import annotations

import torch

from attnaudit.kernel.gram import PerHead
from attnaudit.measures.explained_variance import PREDICTED_OUTPUTS
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.measure import Cost, Measure
from attnaudit.measures.measure_input import MeasureInput
from attnaudit.theories.low_pass import AttentionGraph, mean_over_groups


def low_pass_share(at: MeasureInput) -> PerHead:
    """The fall of the mean frequency from values to outputs, as a share of that of an ideal low-pass."""
    heads, ideal = at.heads, at.prediction.outputs
    if ideal is None or heads.query.shape[1] % heads.tokens:
        return torch.full((len(heads),), torch.nan, dtype=torch.float64, device=heads.key.device)
    graph = at.keys.shared(_graph)
    outputs, lowest = (mean_over_groups(own, heads.tokens) for own in (heads.output, ideal))
    before, after, least = (graph.mean_frequency(own) for own in (heads.value, outputs, lowest))
    return torch.where(before > least, (before - after) / (before - least), torch.nan)


def _graph(keys: KeyKernel) -> AttentionGraph:
    return AttentionGraph.of(keys.heads.attention())


LOW_PASS_SHARE = Measure(
    "low_pass_share",
    "fall of the mean frequency from V to outputs on the attention graph, as a share of that of an ideal low-pass",
    low_pass_share,
    closer="higher",
    ideal=1.0,
    guard=PREDICTED_OUTPUTS,
    cost=Cost.EIGENPAIRS,
    default=False,
)
