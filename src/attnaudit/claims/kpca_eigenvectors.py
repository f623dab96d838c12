"""The coefficients that trained values imply are eigenvectors."""

from attnaudit.claims.claim import Claim

CLAIM = Claim(
    name="kpca-eigenvectors",
    statement="The coefficients that a head's values imply are eigenvectors of the centred Gram matrix of its keys.",
    heads_have="values that imply kernel-PCA eigenvectors",
    citation="Teo & Nguyen 2024, eq. 11 (γ test); called infeasible by Sarıtaş & Yıldız 2025, section 5",
    formula="K̃ â_m = ρ_m â_m for Â = (I - 1_N)G⁻¹V, and 1ᵀG⁻¹V = 0",
    rule=(
        "The centring matrix is its own pseudo-inverse, so Â is the least-squares solution and the test is feasible. "
        "But G⁻¹ weighs few tokens, so that a thousandth of noise in the values fails it: the residual of Â, its "
        "centring defect, its span and γ differences are shown. What decides is the same statement about the values: "
        "each column v = Ga with a leading eigenvector a, matched by |cosine|. Causal heads are excluded by a theorem "
        "and not scored."
    ),
    limits=(
        "This is about the weights as they are stored, the model's own gauge. Keys can be rescaled or mixed, and "
        "queries with them, without changing what the network computes; kernel PCA then predicts other values. A "
        "refutation does not say that values and keys are unrelated."
    ),
    decided_by=("column_cosine_matched",),
    shown=("eigenvector_residual", "centering_defect", "subspace_overlap", "gamma_rel"),
)
