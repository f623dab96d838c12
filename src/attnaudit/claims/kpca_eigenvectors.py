"""The coefficients that trained values imply are eigenvectors."""

from attnaudit.claims.claim import Claim

CLAIM = Claim(
    name="kpca-eigenvectors",
    statement="The coefficients that a head's values imply are eigenvectors of the centred Gram matrix of its keys.",
    citation="Teo & Nguyen 2024, eq. 11 (γ test); called infeasible by Sarıtaş & Yıldız 2025, section 5",
    formula="K̃ â_m = ρ_m â_m for Â = (I - 1_N)G⁻¹V, and 1ᵀG⁻¹V = 0",
    rule=(
        "The centring matrix is its own pseudo-inverse, so Â is the least-squares solution and the test is feasible: "
        "its eigenvector residual and the centring defect of G⁻¹V, 0 if the claim holds, scored between references. "
        "γ differences are shown; being elementwise ratios they are ruled by entries near zero."
    ),
    decided_by=("eigenvector_residual", "centering_defect"),
    shown=("gamma_abs", "gamma_rel"),
)
