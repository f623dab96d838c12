"""Outputs as the low-frequency part of the values, on the graph that attention is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.kernel.prediction import Prediction
from attnaudit.kernel.solvers import LARGE, eigenpairs
from attnaudit.theories.base import no_prediction
from attnaudit.theories.fitting import FittedTheory, NothingToFit
from attnaudit.theories.recall import LastResult


@dataclass(frozen=True)
class AttentionGraph:
    """The Laplacian L = D - (P + Pᵀ)/2 of attention P, whose eigenvalues are frequencies."""

    laplacian: Float[Tensor, "heads tokens tokens"]

    @staticmethod
    def of(attention: Float[Tensor, "heads queries tokens"]) -> AttentionGraph:
        """Of heads that share their keys, attention is the mean over them."""
        mean = mean_over_groups(attention, attention.shape[-1])
        weights = (mean + mean.mT) / 2
        return AttentionGraph(torch.diag_embed(weights.sum(dim=-1)) - weights)

    @cached_property
    def _modes(self) -> Float[Tensor, "heads tokens tokens"]:
        """Eigenvectors, of the lowest frequency first."""
        return eigenpairs(self.laplacian)[1]

    def mean_frequency(self, signal: Float[Tensor, "heads tokens dim"]) -> Float[Tensor, "heads"]:
        """tr(SᵀLS) / tr(SᵀS) without the mean over tokens: frequencies, weighted by the energy of the signal there."""
        signal = signal.double()
        signal = signal - signal.mean(dim=1, keepdim=True)
        return (signal * (self.laplacian @ signal)).sum(dim=(1, 2)) / signal.square().sum(dim=(1, 2))

    def ideal(
        self, signal: Float[Tensor, "heads tokens dim"], energy: Float[Tensor, "heads"]
    ) -> Float[Tensor, "heads tokens dim"]:
        """The lowest frequencies of a signal that have this energy together, the last of them in part."""
        modes = self._modes
        parts = modes.mT @ signal.double()
        own = parts.square().sum(dim=-1)
        room = energy[:, None] - (own.cumsum(dim=-1) - own)
        kept = (room / own.clamp_min(torch.finfo(own.dtype).tiny)).clamp(0, 1)
        return modes @ (kept.sqrt()[..., None] * parts)


def mean_over_groups(
    rows: Float[Tensor, "heads queries columns"], tokens: int
) -> Float[Tensor, "heads tokens columns"]:
    """Of what belongs to queries, the mean over heads that share their keys, whose queries follow one another."""
    found: Tensor = rows.double().reshape(len(rows), -1, tokens, rows.shape[-1]).mean(dim=1)
    return found


class LowPass(FittedTheory):
    """Wang et al. (2022): attention is a low-pass filter, and a head writes the low-frequency part of its values.

    Frequencies are the eigenvalues of the Laplacian of the symmetrised attention graph. A filter that keeps as much
    energy as the output has cannot bring the mean frequency lower than the ideal one, which passes the lowest
    frequencies as they are and stops all others: the theory says that the head is that filter. Outputs with as many
    high frequencies as values, or more, refute it. Any values that the same attention averages lose high frequencies:
    what is left of a random projection of the inputs, the null, says how many. The mean over tokens, frequency 0,
    passes every attention, and is left out.
    """

    name = "low-pass"
    text = "outputs are the low-frequency part of the values (Wang et al. 2022)"
    measures = ("output_explained_variance",)
    shown = ("low_pass_share",)

    def __init__(self) -> None:
        self._graph = LastResult(_graph)

    def fitting(self) -> NothingToFit:
        """Nothing to fit."""
        return NothingToFit(lambda heads: _filtered(heads, self._graph))


def _graph(heads: Heads) -> AttentionGraph:
    return AttentionGraph.of(heads.attention())


def _filtered(heads: Heads, graph: LastResult[AttentionGraph]) -> Prediction:
    """As outputs, the ideal low-pass of the values that has the energy of the outputs."""
    if heads.query.shape[1] % heads.tokens:
        return no_prediction(heads, "its queries are not those of its tokens")
    if heads.tokens > LARGE:
        return no_prediction(heads, f"it needs the attention matrix, which is not built above {LARGE:,} tokens")
    output, values = mean_over_groups(heads.output, heads.tokens), heads.value.double()
    mean = output.mean(dim=1, keepdim=True)
    energy = (output - mean).square().sum(dim=(1, 2))
    ideal = mean + graph(heads).ideal(values - values.mean(dim=1, keepdim=True), energy)
    groups = heads.query.shape[1] // heads.tokens
    nothing = torch.zeros_like(values[:, 0, 0])
    return Prediction(values, nothing, (None,) * len(heads), outputs=ideal.repeat(1, groups, 1))
