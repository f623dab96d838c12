"""Values are a linear map of the layer's inputs."""

from attnaudit.claims.claim import Claim

CLAIM = Claim(
    name="inputs-lowrank",
    statement="The values of a head are a linear map of the layer's inputs: the baseline of all theories.",
    heads_have="values that are a linear map of the layer's inputs",
    citation="Vaswani et al. 2017, section 3.2: it is how values are made",
    formula="V = XW + b",
    rule=(
        "W and b are fitted to one half of the inputs, and the explained share of the variance of V is measured "
        "on the other half, both ways, between the head's values turned in token space (0) and a random linear "
        "map (1). The least rank of W that explains 95 % is measured beside it (`rank_needed`)."
    ),
    decided_by=("explained_variance",),
    theory="inputs-lowrank",
    needs="an audit that was asked for this claim: it is fitted to halves of the inputs",
    limits=(
        "It is true by construction, so that it has no place among theories: a refutation says that what was "
        "captured as the layer's input is not, or that there are too few inputs to fit."
    ),
    on_request=True,
)
