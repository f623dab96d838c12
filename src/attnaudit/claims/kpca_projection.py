"""Outputs are kernel-PCA projections of the queries."""

from attnaudit.claims.claim import Claim

CLAIM = Claim(
    name="kpca-projection",
    statement="The outputs of a trained head minimise the projection error of kernel PCA.",
    heads_have="outputs that minimise the projection error of kernel PCA",
    citation="Teo & Nguyen 2024, section 2.2.1 (J_proj); reinterpreted by Sarıtaş & Yıldız 2025, section 3",
    formula="J(π, s) = mean_i (‖φ(q_i)‖² + ‖h_i‖²) - (2/N) Σ_m s_m M_{m,π(m)}, M = HᵀC, C = softmax(QKᵀ)V̇",
    rule=(
        "J depends on the size of the outputs, which a network can change without changing what it computes; so what "
        "decides is the alignment of outputs and projected queries, Σ|M|/(‖H‖‖C‖), with the best order and signs (one "
        "assignment problem) and with the best rotation, scored between references. J itself is described. Causal "
        "heads are excluded by a theorem and not scored."
    ),
    limits=(
        "This is about the directions of the outputs, with the weights as they are stored. That a projection error is "
        "small says nothing: even V = 0 comes close to the minimum."
    ),
    decided_by=("projection_alignment_matched", "projection_alignment_rotated"),
)
