"""What kernel PCA would have to be for a causal head, measured (docs/theory/causal.md).

Under a causal mask kernel PCA of what each token sees leaves only V = 0. These measures show how far a head is from
that: its centring defect, how much the prediction for a token depends on tokens that come later and that its value
cannot know of, and how close the values are to the one variant that is left, without centring.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnaudit import kernel
from attnaudit.kernel.gram import PerHead
from attnaudit.kernel.prediction import kernel_pca_values
from attnaudit.kernel.prefixes import LogMasses, centring_defects, determined_share, log_masses, uncentred_values
from attnaudit.kernel.solvers import singular_values
from attnaudit.measures.assignment import matched
from attnaudit.measures.guards import Guard
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.measure import Cost, HeadKind, Measure, Scope
from attnaudit.measures.measure_input import MeasureInput
from attnaudit.measures.subspace import orthonormal

#: How many leading components of two predictions are compared.
COMPONENTS = 16
#: Prefixes with which values are compared, as shares of all tokens.
SHARES = (0.5, 1.0)

Columns = Float[Tensor, "heads tokens components"]


def _masses(keys: KeyKernel) -> LogMasses:
    assert keys.heads.seen is not None
    return log_masses(keys.heads.key, keys.heads.seen, keys.heads.scale)


def prefix_centering_defect(at: MeasureInput) -> PerHead:
    """The mean over queries of ‖Σ_j g_j v_j‖ / Σ_j g_j‖v_j‖ for the keys that each of them sees."""
    return centring_defects(at.keys.shared(_masses), at.heads.value).mean(dim=-1)


def prefix_rank(at: MeasureInput) -> PerHead:
    """The share of tokens whose value the triangular system sets to 0."""
    return determined_share(at.keys.shared(_masses))


def _components(keys: KeyKernel) -> int:
    return min(COMPONENTS, keys.heads.value.shape[-1])


def predicted_from_prefix(keys: KeyKernel, tokens: int) -> tuple[Columns, Columns]:
    """Leading columns that are predicted for the first tokens from these alone, and from all tokens."""
    count = min(_components(keys), tokens)
    alone = kernel.spectrum(keys.heads.key[:, :tokens], count, scale=keys.heads.scale)
    return kernel_pca_values(alone).values, keys.unit_axes.values[:, :tokens, :count]


def _of_half(keys: KeyKernel) -> tuple[Columns, Columns]:
    return predicted_from_prefix(keys, keys.heads.tokens // 2)


def matched_cosines(columns: tuple[Columns, Columns]) -> PerHead:
    """Mean |cosine| of columns in the best assignment."""
    first, second = (each / torch.linalg.vector_norm(each, dim=1, keepdim=True) for each in columns)
    return matched((first.mT @ second).abs()).mean(dim=-1)


def prefix_span_agreement(at: MeasureInput) -> PerHead:
    """Σσ²/c of the spans that the first half of the tokens, and all tokens, predict for that half."""
    first, second = map(orthonormal, at.keys.shared(_of_half))
    return singular_values(first.mT @ second).square().mean(dim=-1)


def prefix_column_agreement(at: MeasureInput) -> PerHead:
    """Mean |cosine| of the columns that the first half of the tokens, and all tokens, predict for that half."""
    return matched_cosines(at.keys.shared(_of_half))


def last_token_effect(at: MeasureInput) -> PerHead:
    """1 - mean |cosine| of the columns predicted for the tokens before the last one, with and without the last."""
    return 1 - matched_cosines(predicted_from_prefix(at.keys, at.heads.tokens - 1))


def _uncentred_bases(keys: KeyKernel) -> list[Columns]:
    """Of the prefixes that are long enough to tell values from chance."""
    dim = keys.heads.value.shape[-1]
    lengths = [int(share * keys.heads.tokens) for share in SHARES]
    return [
        orthonormal(uncentred_values(keys.heads.key[:, :length], dim, keys.heads.scale))
        for length in lengths
        if length >= 2 * dim
    ]


def uncentred_prefix_overlap(at: MeasureInput) -> PerHead:
    """Σσ²/d of the span of V and that of kernel PCA without centring, on prefixes, and averaged over them."""
    values = at.heads.value.double()
    found = [
        singular_values(orthonormal(values[:, : basis.shape[1]]).mT @ basis).square().mean(dim=-1)
        for basis in at.keys.shared(_uncentred_bases)
    ]
    return torch.stack(found).mean(dim=0) if found else values.new_full((len(values),), torch.nan)


def _tokens(text: str, least: Callable[[KeyKernel], int], *, solved: bool = True) -> Guard:
    """At least so many tokens, and eigenpairs if these are needed."""

    def problems(at: MeasureInput) -> list[str | None]:
        needed, tokens = least(at.keys), at.heads.tokens
        short = f"N = {tokens} tokens are fewer than {needed}" if tokens < needed else None
        return [short or problem for problem in (at.keys.problems if solved else (None,) * len(at.heads))]

    def usable(at: MeasureInput) -> Bool[Tensor, "heads"]:
        return torch.tensor([problem is None for problem in problems(at)], device=at.heads.key.device)

    return Guard(text, problems, usable)


#: Half of the tokens must be twice as many as the components that are compared.
_HALF = _tokens("enough tokens", lambda keys: 4 * _components(keys))
_ALL = _tokens("N ≥ 2d tokens", lambda keys: 2 * keys.heads.value.shape[-1], solved=False)
_CAUSAL = HeadKind(lambda heads: heads.causal, "it is not causal")


PREFIX_CENTERING_DEFECT = Measure(
    "prefix_centering_defect",
    "how far values are from centred over what each token sees: 0 for V = 0 alone (causal heads)",
    prefix_centering_defect,
    scope=Scope.VALUES,
    closer="lower",
    ideal=0.0,
    cost=Cost.PAIRS,
    only_for=_CAUSAL,
)
PREFIX_RANK = Measure(
    "prefix_rank",
    "share of tokens whose values kernel PCA of every prefix sets to 0 (causal heads)",
    prefix_rank,
    scope=Scope.KEYS,
    cost=Cost.PAIRS,
    only_for=_CAUSAL,
)
PREFIX_SPAN_AGREEMENT = Measure(
    "prefix_span_agreement",
    "overlap of the spans predicted from half of the tokens and from all (causal heads)",
    prefix_span_agreement,
    scope=Scope.KEYS,
    guard=_HALF,
    cost=Cost.EIGENPAIRS,
    only_for=_CAUSAL,
)
PREFIX_COLUMN_AGREEMENT = Measure(
    "prefix_column_agreement",
    "mean |cosine| of the columns predicted from half of the tokens and from all (causal heads)",
    prefix_column_agreement,
    scope=Scope.KEYS,
    guard=_HALF,
    cost=Cost.EIGENPAIRS,
    only_for=_CAUSAL,
)
LAST_TOKEN_EFFECT = Measure(
    "last_token_effect",
    "how far the last token turns the columns predicted for the others, 1 - |cosine| (causal heads)",
    last_token_effect,
    scope=Scope.KEYS,
    guard=_HALF,
    cost=Cost.EIGENPAIRS,
    only_for=_CAUSAL,
)
UNCENTRED_PREFIX_OVERLAP = Measure(
    "uncentred_prefix_overlap",
    "overlap of the spans of V and of kernel PCA without centring, on prefixes (causal heads)",
    uncentred_prefix_overlap,
    scope=Scope.VALUES,
    closer="higher",
    ideal=1.0,
    guard=_ALL,
    cost=Cost.PAIRS,
    only_for=_CAUSAL,
)
