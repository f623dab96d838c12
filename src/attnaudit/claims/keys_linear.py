"""Values are a linear map of the keys."""

from attnaudit.claims.claim import Claim

CLAIM = Claim(
    name="keys-linear",
    statement="The values of a head are a linear map of its own keys, the same for all inputs.",
    heads_have="values that are a linear map of the keys",
    citation=(
        "Ramsauer et al. 2021, section 2, where it is a definition; a hypothesis about trained softmax attention"
    ),
    formula="V = KW + b",
    rule=(
        "W and b are fitted to one half of the inputs by least squares, and the share of the variance of V that "
        "they explain is measured on the other half, both ways. It is scored between a random projection of the "
        "layer's inputs in place of the keys (0: as wide, and fitted alike) and values planted as KW* (1, fitted "
        "alike). Where the layer's inputs are not known, 0 is the head's values turned in token space. Another "
        "head's keys, and a random projection in place of the values, are shown."
    ),
    decided_by=("explained_variance",),
    theory="keys-linear",
    needs="an audit that was asked for this claim: it is fitted to halves of the inputs",
    limits=(
        "Keys are as attention sees them: rotary positions turn them from token to token, so that a map of what "
        "they were before is none of what they are. The claim does not say that values are made from keys: both "
        "are made from the same inputs, and may only use the same directions."
    ),
    on_request=True,
)
