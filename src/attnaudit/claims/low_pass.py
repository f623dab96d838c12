"""Outputs are the low-frequency part of the values."""

from attnaudit.claims.claim import Claim

CLAIM = Claim(
    name="low-pass",
    statement="A head is an ideal low-pass filter: its outputs are the low-frequency part of its values.",
    heads_have="outputs that are the low-frequency part of the values",
    citation="Wang et al. 2022, theorem 1 and section 2, who prove it in the limit of many layers",
    formula=(
        "O = UθUᵀV, D - (P + Pᵀ)/2 = UΛUᵀ, θ = 1 up to a frequency and 0 above it, both without their means over tokens"
    ),
    rule=(
        "The share of the variance of outputs that the ideal low-pass of the values explains, cut off where it "
        "has the energy of the outputs, is scored between a random projection of the layer's inputs as values, "
        "with outputs of its own (0), and outputs that are that low-pass (1). How far the mean frequency falls, "
        "as a share of the ideal fall, is shown."
    ),
    decided_by=("output_explained_variance",),
    shown=("low_pass_share",),
    theory="low-pass",
    needs="an audit that was asked for this claim: it needs all modes of every attention matrix",
    limits=(
        "Every attention averages, and so removes high frequencies: that is about attention, not about values, "
        "and the null does it too. Low-pass in the sense of the paper, in the limit of many layers, is neither "
        "refuted nor supported by it."
    ),
    on_request=True,
)
