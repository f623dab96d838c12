"""Size of the kernel-PCA eigenvalues of the keys: Tables 2 and 3, and the bound they obey."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jaxtyping import Float
from torch import Tensor

from attnaudit.kernel.gram import PerHead
from attnaudit.measures.guards import EIGENPAIRS, Guard
from attnaudit.measures.measure import Cost, Measure, Scope
from attnaudit.measures.measure_input import MeasureInput

#: Of |μ| over the kept ranks, not divided by N; the median is the lower one. Ranks are sorted in every head, so
#: averaging these over heads gives what the study gets by averaging rank by rank first.
STATISTICS: Mapping[str, Callable[[Float[Tensor, "heads rank"]], PerHead]] = {
    "max": lambda sizes: sizes.amax(dim=-1),
    "min": lambda sizes: sizes.amin(dim=-1),
    "mean": lambda sizes: sizes.mean(dim=-1),
    "median": lambda sizes: sizes.median(dim=-1).values,
}


def _sizes(at: MeasureInput) -> Float[Tensor, "heads rank"]:
    return at.keys.spectrum.eigenvalues.abs()


def _standardised_sizes(at: MeasureInput) -> Float[Tensor, "heads rank"]:
    return at.keys.standardised_eigenvalues[0].abs()


def _statistic(
    name: str,
    text: str,
    sizes: Callable[[MeasureInput], Tensor],
    reduce: Callable[[Tensor], Tensor],
    guard: Guard,
    *,
    every_input: bool = True,
) -> Measure:
    return Measure(
        name,
        text,
        lambda at: reduce(at.shared(sizes)),
        scope=Scope.KEYS,
        guard=guard,
        cost=Cost.EIGENPAIRS,
        every_input=every_input,
    )


_STANDARDISED = Guard(
    "eigenpairs",
    lambda at: at.keys.standardised_eigenvalues[1],
    lambda at: at.keys.standardised_eigenvalues[0].isfinite().all(dim=-1),
)

EIGENVALUES = tuple(
    _statistic(f"eigenvalue_{name}", f"{name} of the top-d eigenvalues of K̃", _sizes, reduce, EIGENPAIRS)
    for name, reduce in STATISTICS.items()
)
STANDARDISED_EIGENVALUES = tuple(
    _statistic(
        f"standardised_eigenvalue_{name}",
        f"{name} of the top-d eigenvalues of K̃ with keys standardised per token",
        _standardised_sizes,
        reduce,
        _STANDARDISED,
        every_input=False,
    )
    for name, reduce in STATISTICS.items()
)
EIGENVALUE_BOUND_RATIO = Measure(
    "eigenvalue_bound_ratio",
    "largest eigenvalue over its provable bound 1/min g",
    lambda at: at.keys.spectrum.bound_ratio,
    scope=Scope.KEYS,
    guard=EIGENPAIRS,
    cost=Cost.EIGENPAIRS,
)
