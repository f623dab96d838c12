"""The numbers behind the study's Figures 2, 3 and 5: squared norms by layer, and differences of γ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from attnaudit.capture.heads import Heads
from attnaudit.errors import UsageError
from attnaudit.kernel import paper
from attnaudit.kernel.feature import token_norms
from attnaudit.kernel.gram import standardised
from attnaudit.measures.gamma import gammas, mean_absolute_difference, mean_relative_difference, perturbed
from attnaudit.measures.norms import trimmed_quartiles

GAMMA_BLOCK = 2  # the third block, as in the study's configuration


@dataclass(frozen=True)
class NormRecord:
    """One layer's squared norms, pooled over heads and tokens: trimmed at the 95th percentile, then quartiles."""

    model: str
    layer: int
    quantity: str
    lower: float
    median: float
    upper: float
    count: int


@dataclass(frozen=True)
class GammaRecord:
    """One component's mean |γ_i - γ_j|: mean over heads, and deviation (ddof 0) over heads of those means."""

    model: str
    vectors: str
    kind: str
    component: int
    mean: float
    std: float


def norm_records(model: str, layers: Sequence[Heads], *, language: bool = False) -> list[NormRecord]:
    """‖φ(q)‖² (temperature √d) and ‖h‖² of every layer.

    The study's `language` script differs: it writes √64 whatever the head width, and attends to padding.
    """
    records = []
    for heads in layers:
        if language:
            heads = replace(heads, output=heads.attended(heads.value))
        norms = token_norms(heads, scale=torch.full_like(heads.scale, 1 / 8) if language else None)
        for quantity, values in (("phi_norm2", norms.phi), ("output_norm2", norms.output)):
            q = trimmed_quartiles(values)
            records.append(NormRecord(model, heads.index[0].layer, quantity, q.lower, q.median, q.upper, q.count))
    return records


def gamma_records(model: str, layers: Sequence[Heads], seed: int) -> list[GammaRecord]:
    """γ differences of true and of perturbed eigenvectors in the study's block, keys standardised, in float32.

    Raises:
        UsageError: the model is too shallow to have that block.
    """
    if len(layers) <= GAMMA_BLOCK:
        raise UsageError(f"Figure 3 needs more than {GAMMA_BLOCK} attention layers, but {model} has {len(layers)}.")
    spectrum = paper.spectrum(standardised(layers[GAMMA_BLOCK].key.float()))
    records = []
    for label, vectors in (("true", spectrum.eigenvectors), ("perturbed", perturbed(spectrum.eigenvectors, seed))):
        values = gammas(spectrum.image(vectors), vectors)
        for kind, mean_difference in (("absolute", mean_absolute_difference), ("relative", mean_relative_difference)):
            means = mean_difference(values)
            centre, spread = means.mean(dim=0), torch.std(means, dim=0, correction=0)
            records += [
                GammaRecord(model, label, kind, component, mean, std)
                for component, (mean, std) in enumerate(zip(centre.tolist(), spread.tolist(), strict=True))
            ]
    return records
