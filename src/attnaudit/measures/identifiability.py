"""Can a theory be true of a head at all, and can the head tell it from chance?"""

from __future__ import annotations

import torch

from attnaudit.kernel.gram import PerHead
from attnaudit.measures.guards import Guard
from attnaudit.measures.measure import Cost, Measure, Scope
from attnaudit.measures.measure_input import MeasureInput
from attnaudit.measures.primal_input import PrimalInput
from attnaudit.records import schema


def kernel_rank(at: MeasureInput | PrimalInput) -> PerHead:
    """How many eigenvalues of K̃, or singular values of a Primal-Attention kernel, are above rounding."""
    return at.kernel_rank.double()


def identifiable(at: MeasureInput | PrimalInput) -> PerHead:
    """1 for a head that the guard of the theory accepts; missing for the others, with the reason."""
    numbers = [torch.nan if problem else 1.0 for problem in at.not_identifiable]
    return torch.tensor(numbers, dtype=torch.float64, device=at.heads.key.device)


def possible(at: MeasureInput) -> PerHead:
    """1 for heads of which the theory can be true; missing for the others, with the theorem that excludes it."""
    lost = at.impossible is not None
    return torch.full((len(at.heads),), torch.nan if lost else 1.0, dtype=torch.float64, device=at.heads.key.device)


KERNEL_RANK = Measure(
    "kernel_rank",
    "number of eigenvalues of K̃ above rounding",
    kernel_rank,
    scope=Scope.KEYS,
    guard=Guard("a kernel", lambda at: at.without_kernel, lambda at: at.has_kernel),
    cost=Cost.EIGENPAIRS,
)
#: Computed for observed heads and every theory whenever there are references: scores leave out the other heads.
IDENTIFIABLE = Measure(
    schema.IDENTIFIABLE,
    "1 if the head can tell the theory from chance, by the guard of the theory",
    identifiable,
    guard=Guard("the guard", lambda at: at.not_identifiable),
    cost=Cost.EIGENPAIRS,
    default=False,
)
#: Computed for observed heads of which a theory cannot be true: scores leave them out, and verdicts count them.
POSSIBLE = Measure(
    schema.POSSIBLE,
    "1 unless the theory cannot be true of the head, by a theorem",
    possible,
    guard=Guard("a theory that can be true", lambda at: (at.impossible,) * len(at.heads)),
    default=False,
)
