"""With finite prompts the same holds up to sampling effects."""

from attnaudit.claims.claim import Claim
from attnaudit.claims.meanings import RecordKind

CLAIM = Claim(
    name="gaussian-finite-prompt",
    statement="With finite prompts attention aligns with the leading eigenvector up to sampling effects.",
    citation="Maulen-Soto & Boyer 2026, abstract; the rate is derived here",
    formula="E sin²(μ, v₁) = Λ/L for one prompt of L tokens, κ_L Λ/N for N prompts; Λ = Σ_j λ₁λ_j/(λ₁-λ_j)²",
    rule=(
        "The rate at which rms sin falls with the length of one prompt, scored between isotropic tokens (0: it does "
        "not) and L^-½ (1), and cos²(μ, v₁) of minimisers on finite data, scored between chance and v₁. Controls: "
        "isotropic tokens, and skewed tokens, on which the softmax must fail where linear attention holds."
    ),
    decided_by=("sampling_rate", "alignment"),
    reads=(RecordKind.LABORATORY,),
    needs="its command, which trains the heads",
    command="attnaudit gaussian finite-prompt",
)
