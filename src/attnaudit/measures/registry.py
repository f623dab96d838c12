"""The list of measures: a new one is a function in a file of its own and a line here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from torch import Tensor

from attnaudit.errors import UsageError
from attnaudit.measures.cka import alignment
from attnaudit.measures.closeness import elementwise
from attnaudit.measures.columns import column_measures
from attnaudit.measures.cosine import token_cosines
from attnaudit.measures.eigenvalues import eigenvalue_bound, eigenvalue_statistics
from attnaudit.measures.eigenvectors import eigenvector_measures, implied_gamma
from attnaudit.measures.evaluation import Evaluation
from attnaudit.measures.family import Family, Measure, Scope
from attnaudit.measures.gamma import study_gamma
from attnaudit.measures.identifiability import identifiability
from attnaudit.measures.legacy import legacy_log_phi, log_mean_excess
from attnaudit.measures.norms import norm_measures, tracking_measures
from attnaudit.measures.projection import projection_measures
from attnaudit.measures.subspace import span_measures


def _standardised_eigenvalues(at: Evaluation) -> Mapping[str, Tensor]:
    statistics = eigenvalue_statistics(at.keys.standardised_spectrum)
    return {f"standardised_{name}": value for name, value in statistics.items()}


def _legacy_projection_error(at: Evaluation) -> Mapping[str, Tensor]:
    norms = at.norms
    return {"legacy_log_projection_error": log_mean_excess(legacy_log_phi(at.heads, norms.log_phi), norms.output)}


_STATISTICS = ("max", "min", "mean", "median")

FAMILIES: Mapping[str, Family] = {
    "columns": Family(
        Scope.PREDICTION,
        lambda at: column_measures(at.heads, at.prediction, at.guards),
        (
            Measure("column_cosine_matched", "|cosine| of columns, best assignment, mean", "higher", 1.0),
            Measure("procrustes", "similarity after the best rotation", "higher", 1.0),
        ),
    ),
    "span": Family(
        Scope.PREDICTION,
        lambda at: span_measures(at.heads, at.theory.basis),
        (
            Measure("value_subspace_overlap", "overlap of the spans of V and V̇", "higher", 1.0),
            Measure("principal_angle_median", "median principal angle between them, in degrees", "lower", 0.0),
        ),
    ),
    "eigenvectors": Family(
        Scope.VALUES,
        lambda at: eigenvector_measures(at.heads, at.keys.spectrum),
        (
            Measure("eigenvector_residual", "‖K̃â - ρâ‖/‖K̃â‖ of Â = (I-1)G⁻¹V, mean", "lower", 0.0),
            Measure("centering_defect", "‖1ᵀG⁻¹V‖/(√N‖G⁻¹V‖)", "lower", 0.0),
            Measure("subspace_overlap", "overlap of the span of Â with the leading eigenvectors", "higher", 1.0),
        ),
    ),
    "projection": Family(
        Scope.VALUES,
        lambda at: projection_measures(at.heads, at.keys.unit_axes, at.keys.phi),
        (
            Measure(
                "projection_error_matched", "J_proj with the best order and signs", "lower", in_units_of_the_head=True
            ),
            Measure("projection_error_rotated", "J_proj with the best rotation", "lower", in_units_of_the_head=True),
            Measure("projection_error_floor", "J_proj of kernel PCA itself"),
        ),
    ),
    "cosine": Family(
        Scope.PREDICTION,
        lambda at: token_cosines(at.heads, at.prediction, at.guards),
        (
            Measure("direct_cosine_mean", "cosine of each token's value and predicted value, mean", "higher", 1.0),
            Measure("direct_cosine_max", "the same, best token", "higher", 1.0),
            Measure("matched_cosine_mean", "cosine after the best assignment of tokens, mean", "higher", 1.0),
            Measure("matched_cosine_max", "the same, best pair", "higher", 1.0),
        ),
    ),
    "cka": Family(
        Scope.PREDICTION,
        lambda at: alignment(at.rows, at.theory.rows, at.guards),
        (
            Measure("linear_cka", "centred kernel alignment, linear, biased", "higher", 1.0),
            Measure("linear_cka_debiased", "the same, debiased: 0 for independent values", "higher", 1.0),
            Measure("kernel_cka", "the same with a radial basis of median width, biased", "higher", 1.0),
        ),
    ),
    "allclose": Family(
        Scope.PREDICTION,
        lambda at: elementwise(at.heads, at.prediction, at.guards),
        (Measure("allclose", "1 if every entry equals the prediction to 1e-5 + 0.1 %", "higher", 1.0),),
    ),
    "eigenvalues": Family(
        Scope.KEYS,
        lambda at: eigenvalue_statistics(at.keys.spectrum),
        tuple(Measure(f"eigenvalue_{s}", f"{s} of the top-d eigenvalues of K̃") for s in _STATISTICS),
    ),
    "standardised": Family(
        Scope.KEYS,
        _standardised_eigenvalues,
        tuple(
            Measure(f"standardised_eigenvalue_{s}", f"{s} of them with keys standardised per token")
            for s in _STATISTICS
        ),
    ),
    "bound": Family(
        Scope.KEYS,
        lambda at: eigenvalue_bound(at.keys.spectrum),
        (Measure("eigenvalue_bound_ratio", "largest eigenvalue over its provable bound 1/min g"),),
    ),
    "norms": Family(
        Scope.VALUES,
        lambda at: norm_measures(at.norms),
        (
            Measure("phi_norm2", "‖φ(q)‖², mean over tokens"),
            Measure("output_norm2", "‖h‖², mean over tokens"),
            Measure("projection_error_mae", "|‖φ(q)‖² - ‖h‖²|, mean over tokens", "lower", 0.0, True),
            Measure("projection_error_rel_output", "the same relative to ‖h‖²", "lower", 0.0),
            Measure("projection_error_rel_phi", "the same relative to ‖φ(q)‖²", "lower", 0.0),
        ),
    ),
    "tracking": Family(
        Scope.VALUES,
        lambda at: tracking_measures(at.norms),
        (
            Measure("phi_norm2_median", "‖φ(q)‖², median over tokens"),
            Measure("projection_error_signed", "‖φ(q)‖² - ‖h‖², mean over tokens: negative for no projection"),
            Measure("output_above_phi", "share of tokens with ‖h‖² > ‖φ(q)‖²", "lower", 0.0),
        ),
    ),
    "legacy": Family(
        Scope.VALUES,
        _legacy_projection_error,
        (Measure("legacy_log_projection_error", "log mean(‖φ(q)‖² - ‖h‖²) as Teo & Nguyen's code has it"),),
    ),
    "implied_gamma": Family(
        Scope.VALUES,
        lambda at: implied_gamma(at.heads, at.keys.spectrum),
        (
            Measure("gamma_abs", "mean |γ_i - γ_j| of Â", "lower", 0.0, in_units_of_the_head=True),
            Measure("gamma_rel", "the same relative to the larger", "lower", 0.0),
        ),
    ),
    "identifiability": Family(
        Scope.KEYS,
        lambda at: identifiability(at.keys.spectrum),
        (Measure("kernel_rank", "number of eigenvalues of K̃ above rounding"),),
    ),
    "gamma": Family(
        Scope.KEYS,
        lambda at: study_gamma(at.keys.spectrum, at.seed),
        (
            Measure("gamma_abs_true", "mean |γ_i - γ_j| of the true eigenvectors", "lower", 0.0),
            Measure("gamma_rel_true", "the same relative to the larger", "lower", 0.0),
            Measure("gamma_abs_perturbed", "mean |γ_i - γ_j| of perturbed eigenvectors", "lower", 0.0),
            Measure("gamma_rel_perturbed", "the same relative to the larger", "lower", 0.0),
        ),
    ),
}

#: Of Primal-Attention layers, which have no values and are no `Heads`: `measures.ksvd` computes them.
PRIMAL_MEASURES = (
    Measure("ksvd_left_overlap", "overlap of the span of E with the leading left singular vectors", "higher", 1.0),
    Measure("ksvd_right_overlap", "overlap of the span of R with the leading right singular vectors", "higher", 1.0),
    Measure("ksvd_dual_residual", "relative error of E = KRΛ/N and R = KᵀEΛ/N", "lower", 0.0),
    Measure("ksvd_objective", "J of the KSVD loss: 0 at a kernel SVD, but elsewhere too"),
)

#: Every measure, by the name of its family.
MEASURES: Mapping[str, tuple[Measure, ...]] = {
    **{name: family.measures for name, family in FAMILIES.items()},
    "primal": PRIMAL_MEASURES,
}

#: Computed only when asked for: γ of true eigenvectors is a tautology, there to repeat Figure 3; the others are for
#: curves of training.
_ON_REQUEST = ("gamma", "tracking", "legacy")
#: What an audit computes unless told otherwise.
DEFAULT_FAMILIES = tuple(name for name in FAMILIES if name not in _ON_REQUEST)


def measure(name: str) -> Measure:
    """The measure of that name."""
    known = {candidate.name: candidate for family in MEASURES.values() for candidate in family}
    if name not in known:
        raise UsageError(f"There is no measure {name!r}; there are {', '.join(known)}.")
    return known[name]


def evaluate(
    evaluation: Evaluation, families: Sequence[str] = DEFAULT_FAMILIES, scopes: Collection[Scope] = tuple(Scope)
) -> dict[str, Tensor]:
    """All measures of the named families that look at one of the scopes, on one batch of heads."""
    values: dict[str, Tensor] = {}
    for name in families:
        if FAMILIES[name].scope in scopes:
            values.update(FAMILIES[name].compute(evaluation))
    return values
