"""In context, attention recovers the direction that spiked Wishart covariances share."""

from attnaudit.claims.claim import Claim
from attnaudit.claims.meanings import RecordKind

CLAIM = Claim(
    name="gaussian-in-context",
    statement="Trained over tasks with spiked Wishart covariances, attention recovers the spike's direction.",
    citation="Maulen-Soto & Boyer 2026, abstract and propositions on the in-context risk",
    formula="Σ ~ Wishart(I + θvvᵀ, n) per prompt; argmin E R(μ; Σ) = ±α* v for every θ > 0",
    rule=(
        "cos²(μ, v) of heads trained on fresh tasks, scored between random directions (0) and v (1). Control: θ = 0, "
        "where there is nothing to find. What a finite number of tasks can recover is shown beside it, with no verdict."
    ),
    decided_by=("alignment",),
    reads=(RecordKind.LABORATORY,),
    needs="its command, which trains the heads",
    command="attnaudit gaussian in-context",
)
