"""Outputs are patterns that a Hopfield network retrieves."""

from attnaudit.claims.claim import Claim

CLAIM = Claim(
    name="hopfield",
    statement=(
        "A head retrieves stored patterns: its outputs are a linear map of the fixed points that its queries come to."
    ),
    heads_have="outputs that are a linear map of stored patterns",
    citation="Ramsauer et al. 2021, sections 2 and 3",
    formula="O = q*W + b, V = KW + b, q* = softmax(scale·q*Kᵀ + mask)K, from q* = q",
    rule=(
        "W and b are fitted to values and keys of one half of the inputs, and the share of the variance of "
        "outputs that q*W + b explains is measured on the other half, both ways, between a random projection of "
        "the layer's inputs as values (0) and planted heads (1: the head's own keys, centred and of one length, "
        "queries near them, V = KW*), both fitted alike."
    ),
    decided_by=("output_explained_variance",),
    theory="hopfield",
    needs="an audit that was asked for this claim: it is fitted to halves of the inputs",
    limits=(
        "It is about retrieval to the end. One update of a Hopfield network is attention itself, so that outputs "
        "are one update whenever V = KW + b: that is keys-linear."
    ),
    on_request=True,
)
