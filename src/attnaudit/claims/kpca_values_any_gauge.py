"""Trained values span what kernel PCA of the keys predicts, in some gauge."""

from attnaudit.claims.claim import Claim

CLAIM = Claim(
    name="kpca-values-any-gauge",
    statement="In some gauge, the values of a trained attention head span the kernel-PCA values of its keys.",
    heads_have="kernel-PCA values in some gauge",
    citation="Teo & Nguyen 2024, section 2.2, modulo the reparametrisations that change no output",
    formula="span V = span G(I - 1_N)A for a kernel exp((k + c)ᵀS(k' + c)) with S ≻ 0, the same for all inputs",
    rule=(
        "S and c are fitted to one half of the inputs, and the overlap of the spans is measured on the other half, "
        "both ways. It is scored between a random projection of the inputs (0) and values planted in a gauge that the "
        "fit does not know (1), both fitted in the same way. Q → QM, K → KM⁻ᵀ + c, V → VM_v do not change it. Causal "
        "heads are excluded by a theorem and not scored."
    ),
    decided_by=("value_subspace_overlap",),
    theory="kpca-any-gauge",
    needs="an audit that was asked for this claim: fitting takes minutes",
    limits=(
        "This is about spans: any mixture of the predicted columns counts as the claim. As a gauge can switch the "
        "kernel off, values that are plain PCA of the keys satisfy it too. A fit may miss a gauge with a much stronger "
        "kernel than keys of their usual size have: then even a true head scores well below 1, but above chance."
    ),
    on_request=True,
)
