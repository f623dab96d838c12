"""Trained values are the kernel-PCA values of the keys."""

from attnaudit.claims.claim import Claim

CLAIM = Claim(
    name="kpca-values",
    statement="The values of a trained attention head equal the kernel-PCA value matrix of its keys.",
    citation="Teo & Nguyen 2024, section 2.2; doubted by Sarıtaş & Yıldız 2025, section 3",
    formula="V = G(I - 1_N)A, G = diag(1/g), K̃ a_m = μ_m a_m, up to order and signs of the columns",
    rule=(
        "Columns matched by |cosine|, the span of Â = (I-1_N)G⁻¹V against the leading eigenvectors, and similarity "
        "after the best rotation, each scored between its references (0: chance, 1: planted). Token cosines are shown, "
        "but a head that satisfies the claim exactly scores like noise on them, so they do not decide."
    ),
    decided_by=("column_cosine_matched", "subspace_overlap", "procrustes"),
    shown=(
        "value_subspace_overlap",
        "kernel_cka",
        "linear_cka",
        "linear_cka_debiased",
        "matched_cosine_mean",
        "direct_cosine_mean",
        "matched_cosine_max",
        "direct_cosine_max",
    ),
)
