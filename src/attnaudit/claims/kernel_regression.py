"""Values are a smooth function of the keys."""

from attnaudit.claims.claim import Claim

CLAIM = Claim(
    name="kernel-regression",
    statement="The values of a head are a smooth function of its keys: similar keys have similar values.",
    heads_have="values that are a smooth function of the keys",
    citation=("Nadaraya 1964 and Watson 1964; attention as kernel smoothing: Tsai et al. 2019, Nguyen et al. 2022"),
    formula="v_i ≈ Σ_{j≠i} κ(k_i, k_j)v_j / Σ_{j≠i} κ(k_i, k_j), κ(k, k') = exp(scale·k·k')",
    rule=(
        "The value of every token is predicted from the other tokens that it sees, of a causal head from earlier "
        "ones, and the share of variance that is explained beyond their plain mean is scored between a random "
        "projection of the layer's inputs (0) and smooth values (1: a random linear map of the keys, smoothed by "
        "the same kernel). The head's values turned in token space, and given to other tokens, are shown."
    ),
    decided_by=("explained_variance",),
    theory="kernel-regression",
    needs="an audit that was asked for this claim: it compares all pairs of tokens",
    limits=(
        "Any projection of the inputs is smooth in the keys, because keys are projections of the same inputs: "
        "most values are far above those turned in token space, and that says nothing of a head. The kernel is "
        "the model's own, which another gauge of the same network changes."
    ),
    on_request=True,
)
