"""Outputs are steps up the density of the tokens."""

from attnaudit.claims.claim import Claim

CLAIM = Claim(
    name="mean-shift",
    statement=(
        "A head moves every token towards where tokens are dense: up the gradient of the log-density of its keys."
    ),
    heads_have="outputs that move tokens towards where they are dense",
    citation="Fukunaga & Hostetler 1975 (mean shift); attention as such a step is a hypothesis here",
    formula=(
        "o_i - ō ∥ (PK)_i W_QᵀW_V, without its mean; log p(q) = log Σ_j exp(scale·q·k_j), ∇_q log p = scale·(PK)_i"
    ),
    rule=(
        "W_Q and W_V follow from queries, values and the layer's inputs of one half of the inputs by least "
        "squares. The mean cosine of outputs and predicted steps, both without their mean over tokens, is "
        "measured on the other half, both ways, between a random projection of the layer's inputs as values (0, "
        "with its own W_V) and outputs that are such steps (1)."
    ),
    decided_by=("step_cosine",),
    theory="mean-shift",
    needs="an audit that was asked for this claim: it is fitted to halves of the inputs",
    limits=(
        "Directions only: the length of a step is free. Queries must be a linear map of the layer's inputs: with "
        "rotary positions or normalised queries, and in cross-attention, there is no number."
    ),
    on_request=True,
)
