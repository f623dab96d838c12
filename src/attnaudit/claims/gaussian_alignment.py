"""Attention trained on Gaussian tokens aligns with the leading eigenvector of their covariance."""

from attnaudit.claims.claim import Claim
from attnaudit.claims.meanings import RecordKind

CLAIM = Claim(
    name="gaussian-alignment",
    statement="Linear and softmax attention trained on Gaussian tokens align with the leading eigenvector of Σ.",
    citation="Maulen-Soto & Boyer 2026, abstract",
    formula="argmin E‖x₁ - T(X)₁‖² = ±√(s/λ₁) v₁, T(X)₁ = Σ_l w(⟨x₁,μ⟩⟨x_l,μ⟩) x_l",
    rule=(
        "cos²(μ, v₁) of heads trained on fresh prompts, scored between random directions (0) and v₁ (1), over "
        "independent trainings; cos²(Σμ, v₁), which forgets its start sooner, is shown beside it. Two controls say "
        "what the verdict is worth: isotropic tokens have nothing to find, and on skewed tokens of the same covariance "
        "the softmax must fail where linear attention holds."
    ),
    decided_by=("alignment",),
    shown=("readout_alignment",),
    reads=(RecordKind.LABORATORY,),
    needs="its command, which trains the heads",
    command="attnaudit gaussian align",
)
