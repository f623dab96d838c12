"""The list of claims: a new one is a file of its own and a line here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from attnaudit.claims import (
    gaussian_alignment,
    gaussian_finite_prompt,
    gaussian_in_context,
    jproj_convergence,
    kpca_eigenvalues,
    kpca_eigenvectors,
    kpca_projection,
    kpca_values,
    ksvd_regularised,
    ksvd_values,
    rpc_because_of_pcp,
    rpc_robust,
    scaled_attention_converges_faster,
    study_similarity,
)
from attnaudit.claims.claim import Claim, Exhibit, Statement
from attnaudit.claims.laboratory import LaboratoryClaim
from attnaudit.claims.robustness import RobustnessClaim
from attnaudit.claims.training import TrainingClaim
from attnaudit.errors import UsageError
from attnaudit.measures import measure_named
from attnaudit.records.evidence import Evidence
from attnaudit.records.verdict import Verdict
from attnaudit.statistics.decisions import THRESHOLD
from attnaudit.statistics.intervals import widened_level

CLAIMS: Mapping[str, Claim] = {
    module.CLAIM.name: module.CLAIM
    for module in (
        kpca_values,
        kpca_eigenvectors,
        kpca_eigenvalues,
        kpca_projection,
        ksvd_values,
        study_similarity,
    )
}

#: Claims about heads trained in the laboratory: no audit of a model can judge them.
LABORATORY_CLAIMS: Mapping[str, LaboratoryClaim] = {
    module.CLAIM.name: module.CLAIM for module in (gaussian_alignment, gaussian_finite_prompt, gaussian_in_context)
}


#: Claims about what training does: decided on the folders of trainings.
TRAINING_CLAIMS: Mapping[str, TrainingClaim] = {
    module.CLAIM.name: module.CLAIM
    for module in (jproj_convergence, ksvd_regularised, scaled_attention_converges_faster)
}

#: Claims about how well networks hold: decided on the folders of evaluations.
ROBUSTNESS_CLAIMS: Mapping[str, RobustnessClaim] = {
    module.CLAIM.name: module.CLAIM for module in (rpc_robust, rpc_because_of_pcp)
}


def statements() -> dict[str, Statement]:
    """Every claim there is, whoever judges it."""
    return {**CLAIMS, **LABORATORY_CLAIMS, **TRAINING_CLAIMS, **ROBUSTNESS_CLAIMS}


def claims_named(names: Sequence[str | Claim]) -> tuple[Claim, ...]:
    """The claims of these names that an audit can judge; a claim given as itself is taken as it is."""
    claims = tuple(_checked(name) if isinstance(name, Claim) else _named(name) for name in names)
    for name, count in Counter(claim.name for claim in claims).items():
        if count > 1:
            raise UsageError(f"{count} claims are called {name!r}: each needs a name of its own.")
    return claims


def _named(name: str) -> Claim:
    if name in LABORATORY_CLAIMS:
        command = LABORATORY_CLAIMS[name].judged_by
        raise UsageError(f"{name} is about heads trained in the laboratory, not about a model: run {command}.")
    if name in TRAINING_CLAIMS:
        raise UsageError(f"{name} is about training, not about a model: run {TRAINING_CLAIMS[name].judged_by}.")
    if name in ROBUSTNESS_CLAIMS:
        raise UsageError(f"{name} is about robustness, not about heads: run {ROBUSTNESS_CLAIMS[name].judged_by}.")
    if name not in CLAIMS:
        raise UsageError(f"There is no claim {name!r}; there are {', '.join(CLAIMS)}.")
    return CLAIMS[name]


def _checked(claim: Claim) -> Claim:
    """A claim of the user's own, refused before anything is computed if it rests on a measure that is not there."""
    for name in (*claim.deciding, *claim.shown):
        measure_named(name)
    return claim


def theories_for(claims: Sequence[Claim]) -> tuple[str, ...]:
    """The theories these claims compare with, kernel PCA first."""
    return tuple(dict.fromkeys(("kpca", *(claim.theory for claim in claims))))


def judge(
    evidence: Evidence,
    summary: Mapping[str, Any],
    claims: Sequence[Claim],
    protocol: str,
    *,
    threshold: float = THRESHOLD,
    seed: int = 0,
) -> tuple[list[Verdict], float]:
    """A verdict per model and claim, and the confidence level of every interval.

    Several scored measures and models are several tests, so each interval is widened (Bonferroni) until all of them
    hold together with 95 % confidence.
    """
    models = list(summary["models"])
    tests = len(models) * sum(len(claim.deciding) for claim in claims if claim.decide is None)
    level = widened_level(tests)
    verdicts = [
        claim.verdict(Exhibit(evidence, summary, model, protocol, level, threshold, seed))
        for model in models
        for claim in claims
    ]
    return verdicts, level
