"""Trained values are the kernel-PCA values of the keys."""

from attnaudit.claims.claim import Claim

CLAIM = Claim(
    name="kpca-values",
    statement="The values of a trained attention head equal the kernel-PCA value matrix of its keys.",
    heads_have="kernel-PCA values",
    citation="Teo & Nguyen 2024, section 2.2; doubted by Sarıtaş & Yıldız 2025, section 3",
    formula="V = G(I - 1_N)A, G = diag(1/g), K̃ a_m = μ_m a_m, up to order and signs of the columns",
    rule=(
        "Columns matched by |cosine|, the spans of values and prediction, and similarity after the best rotation, each "
        "scored between its references (0: a random projection of the same inputs, 1: planted). Refuted as "
        "unrealisable if not even the projection fitted to the prediction comes near it. Token cosines are shown, but "
        "a head that satisfies the claim exactly scores like noise on them; so is the span of Â = (I-1_N)G⁻¹V, which "
        "a little noise destroys. All of it holds in the model's own gauge: see kpca-values-any-gauge. Causal heads "
        "are excluded by a theorem and not scored."
    ),
    limits=(
        "This is about the weights as they are stored, the model's own gauge. Keys can be rescaled or mixed, and "
        "queries with them, without changing what the network computes; kernel PCA then predicts other values. A "
        "refutation does not say that values and keys are unrelated."
    ),
    decided_by=("column_cosine_matched", "value_subspace_overlap", "procrustes"),
    shown=(
        "subspace_overlap",
        "kernel_cka",
        "linear_cka",
        "linear_cka_debiased",
        "matched_cosine_mean",
        "direct_cosine_mean",
        "matched_cosine_max",
        "direct_cosine_max",
    ),
)
