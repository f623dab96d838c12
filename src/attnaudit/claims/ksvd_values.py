"""Values are singular vectors of the query-key kernel."""

from attnaudit.claims.claim import Claim

CLAIM = Claim(
    name="ksvd-values",
    statement=(
        "The values of a head are the right singular vectors of its query-key kernel, also without the KSVD loss."
    ),
    heads_have="kernel-SVD values",
    citation="Chen et al. 2023 (Primal-Attention), who derive it for values trained with their KSVD loss",
    formula="V = R[:, :d], softmax(QKᵀ·scale + mask) = U S Rᵀ, up to order and signs of the columns",
    rule=(
        "As for kpca-values, with the singular vectors as the prediction. The matrix is the model's own, with its mask "
        "and position terms; of heads that share their keys, it has the queries of all."
    ),
    limits=(
        "The theory is about networks trained with the KSVD loss, and this one may not have been. A refutation does "
        "not say that the values have nothing to do with attention."
    ),
    decided_by=("column_cosine_matched", "value_subspace_overlap", "procrustes"),
    shown=("kernel_cka", "linear_cka_debiased"),
    theory="ksvd",
)
