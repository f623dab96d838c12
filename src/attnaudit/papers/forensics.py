"""What could Teo & Nguyen's eigenvalues 648.46 / 4.65 / 40.07 / 17.73 have been?

No eigenvalue of K̃ exceeds 1 (see `Spectrum.bound_ratio`), so some other matrix was meant. This tries the conventions
that a reader or a script could have taken, each on the same heads, and compares all four published numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.kernel.gram import standardised
from attnaudit.numerics.threads import torch_threads
from attnaudit.papers.published_tables import TEO_NGUYEN_EIGENVALUES

FACTOR = 2.0
STATISTICS = tuple(TEO_NGUYEN_EIGENVALUES)
_STANDARDISATIONS = ("none", "per token", "per dimension")


@dataclass(frozen=True)
class Convention:
    """One reading of "the eigenvalues of the Gram matrix"."""

    pairs: str
    normalised: bool
    centred: bool
    temperature: bool
    standardised: str
    over_n: bool


@dataclass(frozen=True)
class EigenvalueMatch:
    """What a convention gives, averaged over heads, and by which factor it misses the published numbers at worst."""

    convention: Convention
    max: float
    min: float
    mean: float
    median: float
    worst_factor: float

    @property
    def fits(self) -> bool:
        """Within a factor of 2 of all four."""
        return self.worst_factor <= FACTOR

    def record(self) -> dict[str, object]:
        """As one flat row."""
        return asdict(self.convention) | {name: getattr(self, name) for name in (*STATISTICS, "worst_factor")}


def conventions() -> Iterator[Convention]:
    """All 96: key-key or query-key; over g g' or not; centred or not; √d or not; standardised how; over N or not."""
    choices = itertools.product(
        ("key-key", "query-key"), (True, False), (True, False), (True, False), _STANDARDISATIONS, (False, True)
    )
    for choice in choices:
        yield Convention(*choice)


def investigate(layers: Sequence[Heads]) -> list[EigenvalueMatch]:
    """Every convention on all heads, the closest first."""
    findings = []
    spectra: dict[Convention, Tensor] = {}
    for convention in conventions():
        plain = Convention(**(asdict(convention) | {"over_n": False}))
        if plain not in spectra:
            spectra[plain] = torch.cat([_sizes(heads, plain) for heads in layers])
        sizes = spectra[plain] / (layers[0].tokens if convention.over_n else 1)
        findings.append(_compare(convention, sizes))
    return sorted(findings, key=lambda finding: finding.worst_factor)


def _compare(convention: Convention, sizes: Float[Tensor, "heads ranks"]) -> EigenvalueMatch:
    by_rank = sizes.mean(dim=0)
    ours = {
        "max": by_rank.max().item(),
        "min": by_rank.min().item(),
        "mean": by_rank.mean().item(),
        "median": by_rank.median().item(),
    }
    misses = [_factor(ours[name], published) for name, published in TEO_NGUYEN_EIGENVALUES.items()]
    return EigenvalueMatch(convention, **ours, worst_factor=max(misses))


def _factor(ours: float, published: float) -> float:
    if not math.isfinite(ours) or ours <= 0:
        return math.inf
    return max(ours / published, published / ours)


def _sizes(heads: Heads, convention: Convention) -> Float[Tensor, "heads ranks"]:
    """The d largest |eigenvalues| (singular values for query-key) of the matrix of a convention, largest first."""
    key, query = (_prepared(x.double(), convention.standardised) for x in (heads.key, heads.query))
    scale = 1 / math.sqrt(heads.dim) if convention.temperature else 1.0
    own = key @ key.mT * scale
    scores = own if convention.pairs == "key-key" else query @ key.mT * scale
    if convention.normalised:
        scores = scores - torch.logsumexp(scores, -1)[:, :, None] - torch.logsumexp(own, -1)[:, None, :]
    largest = scores.amax(dim=(1, 2), keepdim=True)
    matrix = torch.exp(scores - largest)
    if convention.centred:
        matrix = (
            matrix - matrix.mean(-1, keepdim=True) - matrix.mean(-2, keepdim=True) + matrix.mean((1, 2), keepdim=True)
        )
    with torch_threads(1):
        if convention.pairs == "key-key":
            sizes = torch.linalg.eigvalsh(matrix).abs().sort(dim=-1, descending=True).values
        else:
            sizes = torch.linalg.svdvals(matrix)
    return torch.exp(torch.log(sizes[:, : heads.dim]) + largest[:, 0])


def _prepared(x: Float[Tensor, "heads tokens dim"], standardisation: str) -> Float[Tensor, "heads tokens dim"]:
    if standardisation == "per token":
        return standardised(x)
    if standardisation == "per dimension":
        return standardised(x.mT.contiguous()).mT
    return x
