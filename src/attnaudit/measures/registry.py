"""The list of measures: a new one is a function in a file of its own and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

from attnaudit.errors import UsageError
from attnaudit.measures.cka import alignment
from attnaudit.measures.closeness import elementwise
from attnaudit.measures.cosine import token_cosines
from attnaudit.measures.eigenvalues import eigenvalue_bound, eigenvalue_statistics
from attnaudit.measures.evaluation import Evaluation
from attnaudit.measures.gamma import study_gamma
from attnaudit.measures.norms import norm_measures


@dataclass(frozen=True)
class Measure:
    """One number per head.

    `closer` says which direction is closer to the theory ("higher", "lower", or "neither" for a plain description),
    `ideal` the value a head has for which the theory is exactly true.
    """

    name: str
    text: str
    closer: str = "neither"
    ideal: float | None = None


@dataclass(frozen=True)
class Family:
    """Measures that share their work, and the function that computes them together."""

    compute: Callable[[Evaluation], Mapping[str, Tensor]]
    measures: tuple[Measure, ...]


def _standardised_eigenvalues(at: Evaluation) -> Mapping[str, Tensor]:
    statistics = eigenvalue_statistics(at.standardised_spectrum)
    return {f"standardised_{name}": value for name, value in statistics.items()}


_STATISTICS = ("max", "min", "mean", "median")

FAMILIES: Mapping[str, Family] = {
    "cosine": Family(
        lambda at: token_cosines(at.heads, at.prediction, at.guards),
        (
            Measure("direct_cosine_mean", "cosine of each token's value and predicted value, mean", "higher", 1.0),
            Measure("direct_cosine_max", "the same, best token", "higher", 1.0),
            Measure("matched_cosine_mean", "cosine after the best assignment of tokens, mean", "higher", 1.0),
            Measure("matched_cosine_max", "the same, best pair", "higher", 1.0),
        ),
    ),
    "cka": Family(
        lambda at: alignment(at.heads, at.prediction, at.guards),
        (
            Measure("linear_cka", "centred kernel alignment, linear, biased", "higher", 1.0),
            Measure("linear_cka_debiased", "the same, debiased: 0 for independent values", "higher", 1.0),
            Measure("kernel_cka", "the same with a radial basis of median width, biased", "higher", 1.0),
        ),
    ),
    "allclose": Family(
        lambda at: elementwise(at.heads, at.prediction, at.guards),
        (Measure("allclose", "1 if every entry equals the prediction to 1e-5 + 0.1 %", "higher", 1.0),),
    ),
    "eigenvalues": Family(
        lambda at: eigenvalue_statistics(at.spectrum),
        tuple(Measure(f"eigenvalue_{s}", f"{s} of the top-d eigenvalues of K̃") for s in _STATISTICS),
    ),
    "standardised": Family(
        _standardised_eigenvalues,
        tuple(
            Measure(f"standardised_eigenvalue_{s}", f"{s} of them with keys standardised per token")
            for s in _STATISTICS
        ),
    ),
    "bound": Family(
        lambda at: eigenvalue_bound(at.spectrum),
        (Measure("eigenvalue_bound_ratio", "largest eigenvalue over its provable bound 1/min g"),),
    ),
    "norms": Family(
        lambda at: norm_measures(at.norms),
        (
            Measure("phi_norm2", "‖φ(q)‖², mean over tokens"),
            Measure("output_norm2", "‖h‖², mean over tokens"),
            Measure("projection_error_mae", "|‖φ(q)‖² - ‖h‖²|, mean over tokens", "lower", 0.0),
            Measure("projection_error_rel_output", "the same relative to ‖h‖²", "lower", 0.0),
            Measure("projection_error_rel_phi", "the same relative to ‖φ(q)‖²", "lower", 0.0),
        ),
    ),
    "gamma": Family(
        lambda at: study_gamma(at.spectrum.matrix, at.spectrum.eigenvectors, at.seed),
        (
            Measure("gamma_abs_true", "mean |γ_i - γ_j| of the true eigenvectors", "lower", 0.0),
            Measure("gamma_rel_true", "the same relative to the larger", "lower", 0.0),
            Measure("gamma_abs_perturbed", "mean |γ_i - γ_j| of perturbed eigenvectors", "lower", 0.0),
            Measure("gamma_rel_perturbed", "the same relative to the larger", "lower", 0.0),
        ),
    ),
}

#: What an audit computes unless told otherwise; γ of true eigenvectors is a tautology, there to repeat Figure 3.
DEFAULT_FAMILIES = tuple(name for name in FAMILIES if name != "gamma")


def measure(name: str) -> Measure:
    """The measure of that name."""
    for family in FAMILIES.values():
        for candidate in family.measures:
            if candidate.name == name:
                return candidate
    known = ", ".join(m.name for family in FAMILIES.values() for m in family.measures)
    raise UsageError(f"There is no measure {name!r}; there are {known}.")


def evaluate(evaluation: Evaluation, families: tuple[str, ...] = DEFAULT_FAMILIES) -> dict[str, Tensor]:
    """All measures of the named families on one batch of heads."""
    values: dict[str, Tensor] = {}
    for name in families:
        values.update(FAMILIES[name].compute(evaluation))
    return values
