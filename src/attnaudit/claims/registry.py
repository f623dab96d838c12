"""The list of claims: a new one is a file of its own and a line here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from attnaudit.claims import (
    gaussian_alignment,
    gaussian_finite_prompt,
    gaussian_in_context,
    gaussian_regulariser,
    hopfield,
    inputs_lowrank,
    jproj_convergence,
    kernel_regression,
    keys_linear,
    kpca_eigenvalues,
    kpca_eigenvectors,
    kpca_projection,
    kpca_values,
    kpca_values_any_gauge,
    ksvd_regularised,
    ksvd_values,
    low_pass,
    mean_shift,
    rpc_because_of_pcp,
    rpc_cost,
    rpc_fine_tuned,
    rpc_iterations,
    rpc_robust,
    rpc_segments_better,
    scaled_attention_converges_faster,
    study_similarity,
)
from attnaudit.claims.claim import Claim
from attnaudit.claims.meanings import RecordKind
from attnaudit.errors import UsageError, unknown
from attnaudit.measures import measure_named

CLAIMS: Mapping[str, Claim] = {
    module.CLAIM.name: module.CLAIM
    for module in (
        kpca_values,
        kpca_values_any_gauge,
        kpca_eigenvectors,
        kpca_eigenvalues,
        kpca_projection,
        ksvd_values,
        keys_linear,
        kernel_regression,
        hopfield,
        mean_shift,
        low_pass,
        inputs_lowrank,
        study_similarity,
        gaussian_alignment,
        gaussian_finite_prompt,
        gaussian_in_context,
        gaussian_regulariser,
        jproj_convergence,
        ksvd_regularised,
        scaled_attention_converges_faster,
        rpc_robust,
        rpc_because_of_pcp,
        rpc_iterations,
        rpc_fine_tuned,
        rpc_segments_better,
        rpc_cost,
    )
}
_RECORDS = {
    RecordKind.AUDIT: "audits of models",
    RecordKind.TRAINING: "trainings",
    RecordKind.EVALUATION: "evaluations",
    RecordKind.LABORATORY: "heads trained in the laboratory",
    RecordKind.COST: "costs of networks",
}


def claims_about(*kinds: RecordKind) -> tuple[Claim, ...]:
    """All claims that are judged on records of these kinds, without those that must be named."""
    return tuple(claim for claim in CLAIMS.values() if set(claim.reads) & set(kinds) and not claim.on_request)


def claims_named(
    names: Sequence[str | Claim], *kinds: RecordKind, own_measures: Collection[str] = ()
) -> tuple[Claim, ...]:
    """The claims of these names, which must be judged on records of these kinds; one of the user's own is taken as is.

    `own_measures` are names of measures that no registry has.

    Raises:
        UsageError: a name is unknown or occurs twice, or a claim needs another kind of record or an unknown measure.
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        example = f"[{names!r}]" if isinstance(names, str | Claim) else '["kpca-values"]'
        raise UsageError(f'claims must be "all" or a list, such as {example}, got {names!r}.')
    claims = tuple(name if isinstance(name, Claim) else _named(name, kinds) for name in names)
    for claim in claims:
        _check(claim, kinds, own_measures)
    for name, count in Counter(claim.name for claim in claims).items():
        if count > 1:
            raise UsageError(f"{count} claims are called {name!r}: each needs a name of its own.")
    return claims


def _named(name: str, kinds: Sequence[RecordKind]) -> Claim:
    if name not in CLAIMS:
        raise unknown("claim", name, [claim.name for claim in CLAIMS.values() if set(claim.reads) & set(kinds)])
    return CLAIMS[name]


def _check(claim: Claim, kinds: Sequence[RecordKind], own_measures: Collection[str]) -> None:
    """Refuse a claim that cannot be judged before anything is computed."""
    if not set(claim.reads) & set(kinds):
        read, asked = (" or ".join(_RECORDS[kind] for kind in of) for of in (claim.reads, kinds))
        raise UsageError(f"{claim.name} is judged on {read}, not on {asked}: run {claim.command}.")
    if claim.reads == (RecordKind.AUDIT,) and claim.decide is None:
        for name in {*claim.decided_by, *claim.shown}.difference(own_measures):
            measure_named(name)


def theories_for(claims: Sequence[Claim]) -> tuple[str, ...]:
    """The theories these claims compare with, kernel PCA first."""
    return tuple(dict.fromkeys(("kpca", *(claim.theory for claim in claims))))
