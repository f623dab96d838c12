"""Outputs are kernel-PCA projections of the queries."""

from attnaudit.claims.claim import Claim

CLAIM = Claim(
    name="kpca-projection",
    statement="The outputs of a trained head minimise the projection error of kernel PCA.",
    citation="Teo & Nguyen 2024, section 2.3 (J_proj); reinterpreted by Sarıtaş & Yıldız 2025, section 4",
    formula="J(π, s) = mean_i (‖φ(q_i)‖² + ‖h_i‖²) - (2/N) Σ_m s_m M_{m,π(m)}, M = HᵀC, C = softmax(QKᵀ)V̇",
    rule=(
        "The exact error with the best order and signs (one assignment problem) and with the best rotation, scored "
        "between the outputs of references and those of planted values, which attain the floor of kernel PCA."
    ),
    decided_by=("projection_error_matched", "projection_error_rotated"),
)
